"""One address for all models: the program behind HAProxy that chooses a pool by ``model``.

HAProxy has checked the API key and passes requests to a socket that systemd opened. The program
sends the request to HAProxy's socket of pools, with the pool's name in a header, passes the answer
on unchanged, and counts its usage. A request whose replica is down, or closes the connection before
its answer, is sent to one other replica: a prompt that kills engines kills two engines at most. An
answer that was cut off is not repaired: a stream ends with an error event, and without ``[DONE]``.

There are two processes: systemd's main process only waits. When the main process ends (``systemctl
restart``) or at SIGTERM, the serving process accepts no more connections and finishes its answers
while its successor already serves; for this the unit has ``KillMode=process``. SIGHUP reloads the
document.
"""

import asyncio
import errno
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path

from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.records import Malformed
from sparkwright.host.models import bodies, document, limits, prefixes, refusal, usage, wire

#: Seconds for a head; for a whole body; for an unread body after a refusal; for HAProxy's count of
#: servers, and its largest age; between two writes of usage; for answers after the main process's
#: end.
_HEAD, _UPLOAD, _UNREAD, _STATE, _STATE_AGE, _FLUSH, _FINISH = 30, 600, 10, 2, 1, 2, 7200
#: Number of large bodies to parse at the same time, each of another key.
_PARSERS = 2
#: Errors of a full disk, and seconds until a retry.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_SOON = 10
_JSON = "application/json"
#: Routes whose streams end with usage on request.
_STREAMS = ("/v1/chat/completions", "/v1/completions")
#: Routes whose prompts an engine caches, so that a prompt with the same beginning costs less there.
_CACHED = (*_STREAMS, "/v1/messages", "/v1/responses")
#: Headers that the address sets itself, or drops: it could not read a compressed answer.
_OURS = (
    b"x-sparkwright-key", b"x-sparkwright-pool", b"x-sparkwright-near", b"x-sparkwright-not",
    b"content-length", b"accept-encoding",
)  # fmt: skip
#: Headers of an answer that the client does not get.
_REPLACED = (b"content-length", b"x-sparkwright-server", b"x-sparkwright-unserved")
#: Function that yields a request with one more line in the head.
_Sent = Callable[[str], Iterator[bytes]]
#: Last event of a stream whose replica died; the connection's end alone shows the fault less
#: clearly.
_BROKE_OFF = refusal.Refused(502, "The replica disconnected during its answer.")
#: Errors when a client or HAProxy ends a connection, at any time.
_BROKEN = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class Address:
    """State that all requests share: the document, counts, and room for bodies."""

    def __init__(self, path: str) -> None:
        self._path, self.door, self.loaded = path, document.read(path), int(time.time())
        self.ledger = usage.Ledger(self.door.usage)
        self.charges, self.room = limits.Charges(self.ledger), bodies.Room()
        self.refused = Counter[int]()
        self.prefixes = prefixes.Prefixes()
        self.parsers = asyncio.Semaphore(_PARSERS)
        self.parsing = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._state: dict[str, int] | None = None
        self._state_at, self._state_lock = -1.0 * _STATE_AGE, asyncio.Lock()
        #: Connections that were accepted and have not ended.
        self.connections = set[asyncio.Task[None]]()

    def reload(self) -> None:
        """Read the document again; an invalid document changes nothing."""
        try:
            self.door, self.loaded = document.read(self._path), int(time.time())
        except Malformed as error:
            print(error, flush=True)

    def models_of(self, name: str) -> dict[str, document.Model]:
        """Return the models that a key may use."""
        allowed = self.door.keys.get(name, document.Key()).models
        models = self.door.models.items()
        return {model: item for model, item in models if allowed is None or model in allowed}

    async def servers(self) -> dict[str, int] | None:
        """Return the number of servers that are up, by pool, at most a second old; None if HAProxy
        does not answer.
        """
        async with self._state_lock:
            if time.monotonic() - self._state_at >= _STATE_AGE:
                self._state = None
                with suppress(OSError, ValueError, asyncio.TimeoutError, refusal.Refused, *_BROKEN):
                    self._state = await asyncio.wait_for(self._ask_state(), _STATE)
                self._state_at = time.monotonic()
            return self._state

    async def _ask_state(self) -> dict[str, int]:
        async with connected(self.door.pools) as (reader, writer):
            writer.write(b"GET /state HTTP/1.1\r\nHost: pools\r\nConnection: close\r\n\r\n")
            pieces = wire.content(reader, await wire.read_head(reader), until_closed=True)
            lines = b"".join([piece async for piece in pieces]).decode().splitlines()
        # An error's text does not have the form of these lines.
        return {name: int(count) for name, count in (line.split() for line in lines)}

    async def models(self, key: str) -> str:
        """Return the list of models that a key may use, with their state."""
        servers, data = await self.servers(), []
        for name, model in self.models_of(key).items():
            state = "asleep" if model.wakes else "down"
            state = "ready" if (servers or {}).get(model.pool) else state if servers else "unknown"
            data.append({
                "id": name, "object": "model", "created": self.loaded, "owned_by": self.door.name,
                "kind": model.kind, "max_model_len": model.context, "state": state,
            })  # fmt: skip
        return json.dumps({"object": "list", "data": data})

    async def metrics(self) -> str:
        """Return the counts since the start in Prometheus' text form."""
        samples: list[tuple[str, str, float]] = [
            (f"{column}_total", f'key="{key}",model={json.dumps(model, ensure_ascii=False)}', count)
            for (_, key, model), row in self.ledger.totals.items()
            for column, count in zip(usage.COLUMNS, row, strict=True)
        ]
        servers = await self.servers() or {}
        samples += [("refused_total", f'status="{each}"', n) for each, n in self.refused.items()]
        samples += [("servers", f'pool="{each}"', n) for each, n in servers.items()]
        samples.append(("under_way", "", self.charges.under_way.total()))
        samples.append(("unwritten_requests", "", self.ledger.unwritten))
        lines = (f"sparkwright_address_{name}{{{its}}} {count}" for name, its, count in samples)
        return "\n".join(lines) + "\n"

    def accept(self, made: socket.socket) -> None:
        """Accept a connection, and count it from this moment on."""
        with suppress(OSError):  # the other process accepted the connection
            task = asyncio.ensure_future(self._serve(made.accept()[0]))
            self.connections.add(task)
            task.add_done_callback(self.connections.remove)

    async def _serve(self, connection: socket.socket) -> None:
        """Serve a connection, which has one request."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=wire.HEAD)
        try:
            await Exchange(self, reader, writer).run()
        except _BROKEN:
            pass  # the client or HAProxy closed its side: close the other side
        finally:
            writer.close()


class Exchange:
    """A request and its answer."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address, self._reader, self._writer = address, reader, writer
        self._begun, self._meter = time.monotonic(), usage.Meter()
        #: Whether the body is partly unread; whether the replica's answer is complete; and the
        #: answer's status, 0 before the answer.
        self._unread, self._complete, self._status = False, False, 0
        #: Estimated tokens of a prompt, for an answer without usage.
        self._prompt = 0
        #: Digests of the request's beginnings, if a replica may have the prefix in its cache.
        self._digests: list[bytes] = []

    async def run(self) -> None:
        """Read the request and answer it."""
        try:
            head = await asyncio.wait_for(wire.read_head(self._reader), _HEAD)
            self._unread = head.chunked or bool(head.length)
            await self._route(head)
        except refusal.Refused as error:
            self._refuse(error)
        except asyncio.TimeoutError:  # noqa: UP041 (another class in Python 3.10)
            self._refuse(refusal.Refused(408, "The request did not arrive in time."))
        except OSError as error:
            if isinstance(error, ConnectionError) or self._status:
                raise
            status = 507 if error.errno in _FULL else 503
            why = f"The address can't accept this request: {error.strerror}."
            self._refuse(refusal.Refused(status, why, _SOON))
        if self._unread:  # closing a connection with unread data loses the answer
            with suppress(asyncio.TimeoutError, *_BROKEN):
                await asyncio.wait_for(self._discard(), _UNREAD)

    async def _route(self, head: wire.Head) -> None:
        method, target, *_ = head.first.decode("latin-1").split(" ")
        path = target.partition("?")[0]
        if (method, path) == ("GET", "/health"):
            if await self._address.servers() is None:
                raise refusal.Refused(503, "HAProxy does not answer for its pools.", _SOON)
            return self._answer(200, "", "text/plain")
        keys = head.values(b"x-sparkwright-key")
        if len(keys) != 1:  # HAProxy sets this header, and removes it from clients' requests
            raise refusal.Refused(401, "HAProxy did not send the name of an API key.")
        if method == "POST":
            return await self._post(head, path, keys[0])
        if (method, path) == ("GET", "/v1/models"):
            return self._answer(200, await self._address.models(keys[0]), _JSON)
        if (method, path) == ("GET", "/metrics"):
            text = await self._address.metrics()
            return self._answer(200, text, "text/plain; version=0.0.4")
        raise refusal.Refused(404, "There is no such route.")

    async def _post(self, head: wire.Head, path: str, key: str) -> None:
        address, door = self._address, self._address.door
        rights, addresses = door.keys.get(key, document.Key()), 1 + len(door.peers)
        address.charges.judge(key, rights, addresses)
        with ExitStack() as held:
            folder = str(Path(door.usage).parent)
            file = held.enter_context(tempfile.SpooledTemporaryFile(bodies.IN_MEMORY, dir=folder))
            size = await asyncio.wait_for(self._receive(head, key, file, held), _UPLOAD)
            boundary = bodies.boundary(head.value(b"content-type"))
            if (data := bodies.small(file)) is not None:
                fields = bodies.parse(data, boundary)
            else:
                async with address.parsing[key], address.parsers:
                    fields = await asyncio.to_thread(bodies.parse_apart, file, boundary)
            models = address.models_of(key)
            if (model := models.get(fields.model)) is None:
                names = ", ".join(sorted(models)) or "none"
                why = f"There is no model {fields.model[:100]!r}. The models are: {names}."
                raise refusal.Refused(404, why)
            self._prompt = 0 if boundary else min(size // 4, model.context or size)
            pool, tail = model.pool, b""
            if path in _CACHED and not boundary:
                file.seek(0)
                self._digests = address.prefixes.digests(pool, file.read(prefixes.LENGTHS[0]))
            near = address.prefixes.server(self._digests)
            if model.wakes and (await address.servers() or {}).get(pool) == 0:
                pool = document.WAKE + pool
            if fields.member and path in _STREAMS:
                self._meter.hide = True
                size, tail = fields.end, fields.member.encode() + b"}"
            lines = (
                f"X-Sparkwright-Key: {key}\r\nX-Sparkwright-Pool: {pool}\r\n"
                f"Content-Length: {size + len(tail)}\r\nConnection: close\r\n"
            )
            lines += f"X-Sparkwright-Near: {near}\r\n" if near else ""
            text = head.first + b"\r\n" + head.rest(*_OURS) + lines.encode("latin-1")
            sent = partial(_sent, text, file, size, tail)
            again = size + len(tail) <= document.REPEATABLE and pool == model.pool
            with address.charges.admitted(key, rights, addresses):
                try:
                    await self._watched(self._pass_on(sent, held, again))
                finally:
                    self._count(key, fields.model)

    async def _receive(self, head: wire.Head, key: str, file: Any, held: ExitStack) -> int:
        size, room = 0, self._address.room
        # One callback for all pieces: a chunk may have a single byte.
        held.callback(lambda: room.hold(key, -size, 0))
        if head.value(b"expect").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for piece in wire.content(self._reader, head, until_closed=False):
            whole = max(size + len(piece), head.length or 0)
            if whole > bodies.LARGEST:
                raise refusal.Refused(413, f"The limit of a request is {bodies.LARGEST >> 20} MiB.")
            room.hold(key, len(piece), whole)
            size += len(piece)
            file.write(piece)
        self._unread = False
        return size

    def _count(self, key: str, model: str) -> None:
        meter = self._meter
        complete = self._complete or meter.done
        left = not complete and (self._reader.at_eof() or self._writer.is_closing())
        cut = not complete and (left or self._status > 0)
        failed = self._status >= 400 or meter.error or not (complete or left)
        # In a stream without an end or without usage, an event is roughly a token.
        counted = meter.tokens_in or meter.tokens_out
        tokens_out = (
            meter.tokens_out if counted and not cut else max(meter.tokens_out, meter.events)
        )
        tokens_in = meter.tokens_in or (self._prompt if cut else 0)
        tokens, seconds = (tokens_in, tokens_out), round(time.monotonic() - self._begun, 3)
        self._address.ledger.add(key, model, 1, failed, *tokens, seconds, cut)
        self._address.charges.charge(key, sum(tokens))

    async def _watched(self, answering: Coroutine[Any, Any, object]) -> None:
        """Answer the request as long as the client stays connected."""
        answer = asyncio.ensure_future(answering)
        end = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((answer, end), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answer.cancel()
            end.cancel()
            result, _ = await asyncio.gather(answer, end, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def _pass_on(self, sent: _Sent, held: ExitStack, again: bool, other: str = "") -> bool:
        """Send the request to a replica, and pass the answer on.

        Args:
            again: whether to send the request to one other replica if the first replica is down, or
                closes the connection before its answer.
            other: name of the first replica.

        Returns:
            False if no other replica is up, and nothing was passed on.
        """
        own = f"X-Sparkwright-Not: {other}\r\n" if other else ""
        async with connected(self._address.door.pools) as (reader, writer):
            with suppress(ConnectionError):  # HAProxy may answer before it has read the whole body
                for piece in sent(own):
                    writer.write(piece)
                    await writer.drain()
            if not again:
                held.close()
            try:
                answer = await wire.read_head(reader)
            except _BROKEN:
                if other:
                    return False
                raise refusal.Refused(502, "HAProxy disconnected before its answer.") from None
            server = answer.value(b"x-sparkwright-server")
            if server.startswith("<"):  # <NOSRV>: no replica got the request
                if other:
                    return False
                again = False
            unserved = again and answer.values(b"x-sparkwright-unserved")
            if not unserved or not await self._pass_on(sent, held, False, server):
                held.close()
                await self._relay(answer, reader)
        return True

    async def _relay(self, head: wire.Head, reader: asyncio.StreamReader) -> None:
        """Pass an answer on as it arrives."""
        self._status, meter = int(head.first.split()[1]), self._meter
        if self._status == HTTPStatus.OK:
            self._address.prefixes.remember(self._digests, head.value(b"x-sparkwright-server"))
        meter.stream = head.value(b"content-type").lower().startswith("text/event-stream")
        empty = self._status in (204, 304)
        whole = empty or (head.length is not None and not meter.stream)
        framing = b"Content-Length: %d\r\n" % (head.length or 0)
        framing = b"" if empty else framing if whole else b"Transfer-Encoding: chunked\r\n"
        self._send(head.first + b"\r\n" + head.rest(*_REPLACED) + framing)
        framed = bytes if whole else wire.chunk
        # The first line ends an event that was cut off in the middle.
        error = f"\n\ndata: {_BROKE_OFF.body}\n\n".encode() if meter.stream else b""
        try:
            async for piece in wire.content(reader, head, until_closed=not empty):
                if passed := meter.feed(piece):
                    self._writer.write(framed(passed))
                    await self._writer.drain()
            error = b""
        finally:
            if rest := meter.end() if meter.done else error or meter.end():
                self._writer.write(framed(rest))
        self._writer.write(framed(b""))
        self._complete = True

    def _send(self, head: bytes, body: bytes = b"") -> None:
        self._writer.write(head + b"Connection: close\r\n\r\n" + body)

    def _answer(self, status: int, text: str, kind: str, retry: int | None = None) -> None:
        body = text.encode()
        again = f"Retry-After: {retry}\r\n" if retry else ""
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {kind}\r\n"
        head += "Access-Control-Allow-Origin: *\r\n"
        self._send(f"{head}Content-Length: {len(body)}\r\n{again}".encode(), body)

    def _refuse(self, error: refusal.Refused) -> None:
        self._address.refused[error.status] += 1
        self._answer(error.status, error.body, _JSON, error.retry)

    async def _discard(self) -> None:
        while await self._reader.read(wire.PIECE):
            pass


def _sent(head: bytes, file: Any, size: int, tail: bytes, own: str) -> Iterator[bytes]:
    """Yield a request: its head with one more line, ``size`` bytes of a body, and the tail."""
    yield head + own.encode("latin-1") + b"\r\n"
    file.seek(0)
    while size and (piece := file.read(min(size, wire.PIECE))):
        size -= len(piece)
        yield piece
    yield tail


@asynccontextmanager
async def connected(path: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection to HAProxy's socket of pools.

    Raises:
        Refused: no program listens on the socket.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=wire.HEAD)
    except OSError:
        raise refusal.Refused(503, "HAProxy does not answer for its pools.", _SOON) from None
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _run(path: str, made: socket.socket, main_process: int) -> None:
    """Serve until the main process has ended, and then finish the running answers."""
    address, loop, ending = Address(path), asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, address.reload)
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    await address.ledger.flush()
    # asyncio's own server would drop a connection that it accepted just before the
    # server's end.
    made.setblocking(False)
    loop.add_reader(made, address.accept, made)
    left = _FINISH
    while left > 0 and (not ending.is_set() or address.connections):
        await asyncio.sleep(_FLUSH)
        await address.ledger.flush()
        if ending.is_set() or os.getppid() != main_process:
            ending.set()
            loop.remove_reader(made)
            left -= _FLUSH
    await address.ledger.flush()


def main(path: str, *options: str) -> int:
    """Serve forever on the socket that systemd passes as descriptor 3.

    Args:
        path: path of the document.
        options: ``--check`` only validates the document.
    """
    try:
        document.read(path)
    except Malformed as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" in options:
        return 0
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # ignore SIGHUP until its handler is set
    main_process = os.getpid()
    if serving := os.fork():
        signal.signal(signal.SIGHUP, lambda *_: os.kill(serving, signal.SIGHUP))
        return int(os.waitpid(serving, 0)[1] != 0)
    with socket.socket(fileno=3) as made:
        asyncio.run(_run(path, made, main_process))
    return 0
