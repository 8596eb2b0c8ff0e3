"""Sending files: ranges, pace and faults, straight from the disk in pieces of one MiB.

A file is never read as a whole: a connection holds at most the piece being read and the piece
being sent. Reads happen in the event loop's threads, so a slow disk blocks no other request.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .faults import Counters, Fault, Faults
from .ranges import Unsatisfiable, parse_ranges

PIECE_BYTES = 1 << 20
# A paced connection sends this often per second, so that its rate is smooth.
PACED_SENDS = 20


@dataclass(frozen=True)
class Source:
    """A file to send: its blob, its true size, and its names in the counters."""

    blob: Path
    size: int
    etag: str
    repository: str
    path: str


class FileResponse(Response):
    """Answers GET and HEAD for a file with 200, 206 or 416."""

    def __init__(
        self, source: Source, faults: Faults, counters: Counters, headers: dict[str, str]
    ) -> None:
        super().__init__(headers=headers)
        self.source = source
        self.faults = faults
        self.counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then, unless the method is HEAD, the body."""
        method, path = scope["method"], scope["path"]
        asked = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        size = self.source.size
        truncate = self.faults.find("truncate", method, path)
        if truncate is not None and truncate.value < size:
            truncate.hits += 1
            size = truncate.value
        try:
            ranges = self._ranges(method, path, asked, size)
        except Unsatisfiable:
            self.headers["content-range"] = f"bytes */{size}"
            self.headers["content-length"] = "0"
            await self._start(send, 416)
            await send({"type": "http.response.body", "body": b""})
            return
        parts = self._head(ranges, size)
        await self._start(send, 206 if ranges else 200)
        if method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.create_task(_disconnected(receive))
        self.counters.open_stream()
        try:
            await self._send_body(parts, send, gone, self._plan(method, path, parts))
        finally:
            self.counters.streams -= 1
            gone.cancel()

    def _ranges(
        self, method: str, path: str, asked: dict[str, str], size: int
    ) -> list[tuple[int, int]]:
        if "range" not in asked or method != "GET":
            return []
        if self.faults.take("no_ranges", method, path) is not None:
            del self.headers["accept-ranges"]
            return []
        if asked.get("if-range", self.headers["etag"]) != self.headers["etag"]:
            return []
        return parse_ranges(asked["range"], size)

    def _head(self, ranges: list[tuple[int, int]], size: int) -> list[bytes | tuple[int, int]]:
        """Set the headers that depend on the ranges; return the body as text and ranges."""
        parts: list[bytes | tuple[int, int]] = list(ranges or [(0, size)])
        if len(ranges) == 1:
            start, end = ranges[0]
            self.headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        elif ranges:
            boundary = secrets.token_hex(12)
            kind = self.headers["content-type"]
            self.headers["content-type"] = f"multipart/byteranges; boundary={boundary}"
            parts = []
            for start, end in ranges:
                head = (
                    f"\r\n--{boundary}\r\nContent-Type: {kind}\r\n"
                    f"Content-Range: bytes {start}-{end - 1}/{size}\r\n\r\n"
                )
                parts += [head.encode(), (start, end)]
            parts.append(f"\r\n--{boundary}--\r\n".encode())
        self.headers["content-length"] = str(sum(_length(part) for part in parts))
        return parts

    def _plan(self, method: str, path: str, parts: list[bytes | tuple[int, int]]) -> _Plan:
        """Take the faults that apply to this body."""
        spans = [part for part in parts if isinstance(part, tuple)]
        total = sum(_length(part) for part in parts)

        def bites(kind: str) -> Fault | None:
            fault = self.faults.find(kind, method, path)
            if fault is None:
                return None
            if kind == "drop_after":
                hit = fault.value < total
            else:
                hit = any(start <= fault.value < end for start, end in spans)
            fault.hits += hit
            return fault if hit else None

        rate = self.faults.take("rate", method, path)
        after, at, corrupt = bites("drop_after"), bites("drop_at"), bites("corrupt_at")
        return _Plan(
            drop_after=after.value if after else None,
            drop_at=at.value if at else None,
            corrupt_at=corrupt.value if corrupt else None,
            rate=rate.value if rate else None,
        )

    def read(self, file: int, count: int, start: int) -> bytes:
        """Read a piece of the answer, of at most `count` bytes."""
        return os.pread(file, count, start)

    async def _start(self, send: Send, status: int) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def _send_body(
        self,
        parts: list[bytes | tuple[int, int]],
        send: Send,
        gone: asyncio.Task[None],
        plan: _Plan,
    ) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        sent = 0
        left = sum(_length(part) for part in parts)
        key = (self.source.repository, self.source.path)
        async for piece in self._pieces(parts, plan):
            left -= len(piece)
            if plan.drop_after is not None and sent + len(piece) > plan.drop_after:
                piece = piece[: plan.drop_after - sent]
                left = -1
            sent += len(piece)
            self.counters.file_bytes[key] += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": left != 0})
            # Returning before the announced length makes the server close the connection.
            if left < 0 or gone.done():
                return
            if plan.rate is not None:
                await asyncio.sleep(max(began + sent / plan.rate - loop.time(), 0))
        if left == 0 and sent == 0:
            await send({"type": "http.response.body", "body": b""})

    async def _pieces(
        self, parts: list[bytes | tuple[int, int]], plan: _Plan
    ) -> AsyncIterator[bytes]:
        """Read the body piece by piece; it ends early where the connection is to drop."""
        loop = asyncio.get_running_loop()
        step = min(PIECE_BYTES, max(plan.rate // PACED_SENDS, 1)) if plan.rate else PIECE_BYTES
        file = await loop.run_in_executor(None, os.open, self.source.blob, os.O_RDONLY)
        try:
            for part in parts:
                if isinstance(part, bytes):
                    yield part
                    continue
                start, end = part
                drops = plan.drop_at is not None and start <= plan.drop_at < end
                stop = plan.drop_at if drops and plan.drop_at is not None else end
                while start < stop:
                    count = min(step, stop - start)
                    piece = await loop.run_in_executor(None, self.read, file, count, start)
                    if not piece:
                        return
                    if plan.corrupt_at is not None:
                        piece = _corrupt(piece, plan.corrupt_at - start)
                    start += len(piece)
                    yield piece
                if drops:
                    return
        finally:
            os.close(file)


@dataclass(frozen=True)
class _Plan:
    """The faults that one body suffers."""

    drop_after: int | None
    drop_at: int | None
    corrupt_at: int | None
    rate: int | None


def disposition(path: str) -> str:
    """Return Content-Disposition as the hub and its CDN send it."""
    name = path.rsplit("/", 1)[-1]
    return f"inline; filename*=UTF-8''{quote(name)}; filename=\"{name}\";"


def _length(part: bytes | tuple[int, int]) -> int:
    return len(part) if isinstance(part, bytes) else part[1] - part[0]


def _corrupt(piece: bytes, offset: int) -> bytes:
    if not 0 <= offset < len(piece):
        return piece
    return piece[:offset] + bytes([piece[offset] ^ 0xFF]) + piece[offset + 1 :]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
