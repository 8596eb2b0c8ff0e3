"""HTTP/1.1 over asyncio: keep-alive, true streaming, and headers in uvicorn's order."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from . import log

_HEAD_LIMIT = 65536
_BODY_LIMIT = 256 * 1024 * 1024
_IDLE_SECONDS = 5.0
"""uvicorn's keep-alive timeout."""


@dataclass(frozen=True)
class Request:
    """A request: method in capitals, path without query, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""


@dataclass
class Response:
    """A response.

    body: text, or a generator of pieces, each of which is sent at once.
    vary: whether the CORS header is added.
    """

    status: int
    body: bytes | AsyncGenerator[bytes, None]
    content_type: str | None = "application/json"
    vary: bool = True
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """Bytes that are not an HTTP/1.1 request."""


class HttpServer:
    """Server of one handler on a listening socket, until it is stopped."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def start(self, listener: socket.socket) -> None:
        """Listen, and answer requests from now on."""
        self._server = await asyncio.start_server(
            self._connection, sock=listener, limit=_HEAD_LIMIT, backlog=2048
        )

    async def stop(self, patience: float) -> None:
        """Take no more requests, wait `patience` seconds for running requests, and end the rest."""
        self._stopping = True
        if self._server:
            self._server.close()
        for task in list(self._idle):
            task.cancel()
        if self._busy:
            log.uvicorn("Waiting for connections to close. (CTRL+C to force quit)")
            await asyncio.wait(self._busy, timeout=patience)
        for task in list(self._busy):
            task.cancel()
        remaining = self._busy | self._idle
        if remaining:
            await asyncio.wait(remaining, timeout=1)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._idle.add(task)
        try:
            while not self._stopping:
                request = await asyncio.wait_for(_read_head(reader), _IDLE_SECONDS)
                if request is None:
                    break
                self._idle.discard(task)
                self._busy.add(task)
                if request.headers.get("expect", "").lower() == "100-continue":
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request = replace(request, body=await _read_body(reader, request.headers))
                keep = await self._answer(request, reader, writer)
                self._busy.discard(task)
                self._idle.add(task)
                if not keep:
                    break
        except BadRequest:
            with contextlib.suppress(OSError):
                message = b"Invalid HTTP request received."
                plain = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
                writer.write(_head(400, plain) + message)
        except (TimeoutError, asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._busy.discard(task)
            self._idle.discard(task)
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        response = await self._watched(request, reader)
        if response is None:
            return False
        peer = writer.get_extra_info("peername")  # empty for a Unix socket
        log.uvicorn(
            f'{":".join(map(str, peer[:2]))} - "{request.method} {request.path} HTTP/1.1" '
            f"{response.status} {HTTPStatus(response.status).phrase}"
        )
        keep = request.headers.get("connection", "").lower() != "close" and not self._stopping
        headers: list[tuple[str, str]] = []
        if isinstance(response.body, bytes):
            headers.append(("content-length", str(len(response.body))))
        if response.content_type:
            headers.append(("content-type", response.content_type))
        headers += response.headers.items()
        if response.vary:
            headers.append(("vary", "Origin"))
        if not keep:
            headers.append(("connection", "close"))
        if isinstance(response.body, bytes):
            writer.write(_head(response.status, headers))
            writer.write(b"" if request.method == "HEAD" else response.body)
            await writer.drain()
            return keep
        headers.append(("transfer-encoding", "chunked"))
        writer.write(_head(response.status, headers))
        async with contextlib.aclosing(response.body) as pieces:
            async for piece in pieces:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
                if reader.at_eof():
                    return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return keep

    async def _watched(self, request: Request, reader: asyncio.StreamReader) -> Response | None:
        """The handler's response; None if the client disconnects before the response begins."""
        work = asyncio.ensure_future(self._handler(request))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=0.2)
                if not work.done() and reader.at_eof():
                    return None
            return work.result()
        finally:
            if not work.done():
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work


async def _read_head(reader: asyncio.StreamReader) -> Request | None:
    """A request without its body; None if the client has closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest from None
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    target = urlsplit(parts[1])
    path = unquote(target.path) or "/"
    return Request(parts[0].upper(), path, headers, b"", target.query)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts: list[bytes] = []
        while size := _size((await reader.readline()).split(b";")[0].strip(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        while (await reader.readline()).strip():
            pass
        return b"".join(parts)
    return await reader.readexactly(_size(headers.get("content-length", "0").encode(), 10))


def _size(text: bytes, base: int) -> int:
    try:
        size = int(text, base)
    except ValueError:
        raise BadRequest from None
    if not 0 <= size <= _BODY_LIMIT:
        raise BadRequest
    return size


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines.append(f"date: {formatdate(time.time(), usegmt=True)}")
    lines.append("server: uvicorn")
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
