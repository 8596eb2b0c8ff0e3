"""Send files with ranges, pace and faults, from the disk in pieces of one MiB.

A file is never read as a whole: a connection holds at most the piece being read and the piece
being sent. Reads happen in the event loop's threads, so a slow disk blocks no other request.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .hub_faults import Counters, Faults
from .ranges import Unsatisfiable, parse_range

PIECE_BYTES = 1 << 20
# A paced connection sends this many times per second, so that its rate is smooth.
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
    """Answer to GET and HEAD for a file, with status 200, 206 or 416."""

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
            part = self._range(method, asked, size)
        except Unsatisfiable:
            self.headers["content-range"] = f"bytes */{size}"
            self.headers["content-length"] = "0"
            await self._start(send, 416)
            await send({"type": "http.response.body", "body": b""})
            return
        start, end = part or (0, size)
        if part:
            self.headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        self.headers["content-length"] = str(end - start)
        await self._start(send, 206 if part else 200)
        if method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await self._send_body(start, end, send, gone, self._plan(method, path, start, end))
        finally:
            gone.cancel()

    def _range(self, method: str, asked: dict[str, str], size: int) -> tuple[int, int] | None:
        if method != "GET" or asked.get("if-range", self.headers["etag"]) != self.headers["etag"]:
            return None
        return parse_range(asked.get("range"), size)

    def _plan(self, method: str, path: str, start: int, end: int) -> _Plan:
        """Take the faults that apply to this body."""

        def bites(kind: str, low: int, high: int) -> int | None:
            fault = self.faults.find(kind, method, path)
            if fault is None or not low <= fault.value < high:
                return None
            fault.hits += 1
            return int(fault.value)

        rate = self.faults.take("rate", method, path)
        return _Plan(
            drop_after=bites("drop_after", 0, end - start),
            drop_at=bites("drop_at", start, end),
            corrupt_at=bites("corrupt_at", start, end),
            rate=rate.value if rate else None,
        )

    def read(self, file: int, count: int, start: int) -> bytes:
        """Read a piece of the answer, of at most `count` bytes."""
        return os.pread(file, count, start)

    async def _start(self, send: Send, status: int) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def _send_body(
        self, start: int, end: int, send: Send, gone: asyncio.Task[None], plan: _Plan
    ) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        sent = 0
        left = end - start
        key = (self.source.repository, self.source.path)
        async for piece in self._pieces(start, end, plan):
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

    async def _pieces(self, start: int, end: int, plan: _Plan) -> AsyncIterator[bytes]:
        """Read the body piece by piece, up to the byte at which the connection must be dropped."""
        loop = asyncio.get_running_loop()
        step = min(PIECE_BYTES, max(plan.rate // PACED_SENDS, 1)) if plan.rate else PIECE_BYTES
        stop = end if plan.drop_at is None else plan.drop_at
        file = await loop.run_in_executor(None, os.open, self.source.blob, os.O_RDONLY)
        try:
            while start < stop:
                piece = await loop.run_in_executor(
                    None, self.read, file, min(step, stop - start), start
                )
                if not piece:
                    return
                if plan.corrupt_at is not None:
                    piece = _corrupt(piece, plan.corrupt_at - start)
                start += len(piece)
                yield piece
        finally:
            os.close(file)


@dataclass(frozen=True)
class _Plan:
    """Faults of one answer's body."""

    drop_after: int | None
    drop_at: int | None
    corrupt_at: int | None
    rate: int | None


def disposition(path: str) -> str:
    """Return Content-Disposition as the hub and its CDN send it."""
    name = path.rsplit("/", 1)[-1]
    return f"inline; filename*=UTF-8''{quote(name)}; filename=\"{name}\";"


def _corrupt(piece: bytes, offset: int) -> bytes:
    if not 0 <= offset < len(piece):
        return piece
    return piece[:offset] + bytes([piece[offset] ^ 0xFF]) + piece[offset + 1 :]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
