"""Answer requests for sleeping exclusive services, and activate the service that a request names.

HAProxy sends this program requests with a valid key for services with ``activate = "on-request"``.
The first request activates the service by the same transaction and smoke test as any switch. The
request waits and gets the service's own answer; a streaming client receives comments until then. A
request for another service of the group gets 503 with ``Retry-After`` during a switch and shortly
after the switch. The program also stops idle services (idle.py).

``sparkwright-wake.socket`` starts the program; only HAProxy's user can reach the socket.
"""

import http.client
import json
import math
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

from sparkwright.host.exclusive import unattended
from sparkwright.host.exclusive.idle import Idle
from sparkwright.host.lib import exclusive
from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.service import current

#: Largest number of requests that wait for the same service.
_WAITING = 8
#: Largest size in bytes of a body, of all bodies together, and of a body that is always held and
#: parsed: HAProxy admits 64 requests, and the unit may use 256 MiB.
_LARGEST, _TOGETHER, _SMALL = 16 << 20, 64 << 20, 1 << 20
#: Seconds between two comments of a stream, of a client's silence, between two checks, and for the
#: upload of a body.
_COMMENT, _SILENT, _LOOK, _UPLOAD = 5.0, 30.0, 0.2, 120.0
#: Seconds that a service's answer may be silent, as in HAProxy's configuration.
_ANSWER = 2 * 3600.0
#: Headers that belong to a connection, not to the request.
_HOP = ("connection", "keep-alive", "transfer-encoding", "host", "content-length", "upgrade")
_SOON = 30
#: Largest usual correction of a host's clock, in seconds.
_CLOCK = 60.0
_NAME = "X-Sparkwright-Service"
#: Last chunk of an answer.
_END = b"0\r\n\r\n"


class Later(Exception):
    """Reason why a request is not served now, and seconds until a retry."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = max(1, math.ceil(seconds))


class Waking:
    """Activations under way, at most one in each group, with a least time between them."""

    def __init__(self, root: Path) -> None:
        self._root, self._state = root, root / "state"
        self._lock = threading.Lock()
        self._under_way: dict[str, tuple[str, threading.Event]] = {}
        self._waiting = Counter[str]()
        self._held = 0
        self._turn = threading.Lock()
        #: Requests that this program holds, by service.
        self.handled = Counter[str]()
        #: Reason why the last switch did not start, by service; empty if the switch started.
        self.refused: dict[str, str] = {}

    def asleep(self, service: str) -> str | None:
        """Return the service that runs in place of a sleeping service; None once the service is
        awake.
        """
        return exclusive.sleeping(self._state).get(service)

    @contextmanager
    def waiting(self, service: str) -> Iterator[tuple[threading.Event, float]]:
        """Activate a service, or wait for an activation that is under way. Yields an event that is
        set at the end, and the seconds that the request may wait.

        Raises:
            Later: the service is not activated now.
        """
        declared = exclusive.groups(self._state)
        groups = declared.groups.items()
        group = next((name for name, item in groups if service in item.members), None)
        if group is None or service not in declared.on_request:
            raise Later(f"requests do not start {service}: ask its owner", _SOON)
        with self._lock:
            if self._waiting[service] >= _WAITING:
                raise Later(f"{service} is being started, and too many requests wait for it", _SOON)
            if group not in self._under_way:
                self._begin(group, service, declared.stay_seconds)
            other, ended = self._under_way[group]
            if other != service:
                raise Later(f"{other} is being started", _SOON)
            self._waiting[service] += 1
        try:
            yield ended, declared.wait_seconds
        finally:
            with self._lock:
                self._waiting[service] -= 1

    def hold(self, size: int) -> bool:
        """Reserve room for the bytes of a request's body; a negative number releases the room."""
        with self._lock:
            fits = self._held + size <= _TOGETHER
            self._held += size * fits
        return fits

    def _begin(self, group: str, service: str, stay_seconds: float) -> None:
        since = exclusive.active(self._state).get(group)
        left = since.at + stay_seconds - time.time() if since else 0.0
        # A clock correction of a few seconds must not cause an early switch. A clock that was set
        # back further must not delay a switch.
        runs = since is not None and since.service != exclusive.NOBODY
        if since and runs and stay_seconds and 0 < left <= stay_seconds + _CLOCK:
            raise Later(f"{since.service} was started just now", left)
        self._under_way[group] = (service, threading.Event())
        threading.Thread(target=self._activate, args=(group, service)).start()

    @contextmanager
    def handling(self, service: str) -> Iterator[None]:
        """Count a request that this program holds: HAProxy does not count the request for a
        service.
        """
        with self._lock:
            self.handled[service] += 1
        try:
            yield
        finally:
            with self._lock:
                self.handled[service] -= 1

    def rest(self, service: str) -> None:
        """Stop an idle service; requests that arrive during the stop wait for its end."""
        with self._turn:
            unattended.run(self._root, service, "idle", rests=True)

    def connected(self, service: str) -> http.client.HTTPConnection:
        """Return a connection to the service at the address that its release names."""
        if (record := current(self._root / "services" / service)) is None:
            raise Later(f"{service} was never deployed", _SOON)
        try:
            return Server(record.gate.address, record.gate.port).connected(_ANSWER)
        except NoAnswer:
            raise Later(f"{service} gives no answer", _SOON) from None

    def _activate(self, group: str, service: str) -> None:
        try:
            with self._turn:
                self.refused[service] = unattended.run(self._root, service, "request")
        finally:
            with self._lock:
                _, ended = self._under_way.pop(group)
            ended.set()


class Handler(BaseHTTPRequestHandler):
    """Handler of one request; HAProxy makes a connection for each request."""

    protocol_version = "HTTP/1.1"
    timeout = _SILENT
    server: "WakeServer"
    _begun, _chunked = False, False

    def do_POST(self) -> None:
        """Wait for the service, and pass its answer on."""
        self.close_connection = True
        service = self.headers.get(_NAME, "")
        try:
            with self.server.waking.handling(service), ExitStack() as until_sent:
                body = self._body(until_sent)
                if self.server.waking.asleep(service) is not None:
                    self._wait(service, streams=_streams(body))
                self._pass_on(service, body, until_sent)
        except Later as error:
            self._refuse(service, error)
        except OSError:
            pass  # the client has left

    def _body(self, until_sent: ExitStack) -> bytearray:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 12:
            raise Later("a request that wakes a service needs a Content-Length", _SOON)
        if int(length) > _LARGEST:
            raise Later(
                f"requests above {_LARGEST >> 20} MiB must wait until the service runs", _SOON
            )
        size, waking = int(length), self.server.waking
        counted = size if size > _SMALL else 0
        if fits := waking.hold(counted):
            until_sent.callback(waking.hold, -counted)
        body, until = bytearray(), time.monotonic() + _UPLOAD
        while size:
            data = self.rfile.read1(min(65536, size))
            if not data or time.monotonic() > until:
                raise ConnectionError
            size -= len(data)
            body += data * fits
        if not fits:  # only after the whole body: clients do not read an earlier answer
            raise Later("too many large requests wait", _SOON)
        return body

    def _wait(self, service: str, *, streams: bool) -> None:
        waking = self.server.waking
        with waking.waiting(service) as (ended, seconds):
            until = time.monotonic() + seconds
            comment_at = time.monotonic()
            while not ended.wait(_LOOK):
                if time.monotonic() > until:
                    raise Later(f"{service} is still being started", _SOON)
                if streams and time.monotonic() >= comment_at:
                    comment_at = time.monotonic() + _COMMENT
                    # A stream's client ignores comments; the first comment begins the stream.
                    self._head(200, ("Content-Type", "text/event-stream; charset=utf-8"))
                    self._write(f": {service} is being started\n\n".encode())
                self._check_client()
            self._check_client()
        if waking.asleep(service) is not None:
            if reason := waking.refused.get(service):
                raise Later(f"{service} sleeps: {reason}", _SOON)
            raise Later(f"{service} did not start: sparkwright history shows why", 10 * _SOON)

    def _head(self, status: int, *headers: tuple[str, str]) -> None:
        """Send the head of the answer, once. A body without a length is sent in chunks, since the
        end of the connection would look like the end of an answer that was cut off.
        """
        if not self._begun:
            self._begun = True
            self._chunked = not any(name.lower() == "content-length" for name, _ in headers)
            framing = [("Transfer-Encoding", "chunked")] if self._chunked else []
            self.send_response(status)
            for name, value in (*headers, *framing, ("Connection", "close")):
                self.send_header(name, value)
            self.end_headers()

    def _write(self, data: bytes, end: bytes = b"") -> None:
        """Send a piece of the body; ``end`` is the last chunk."""
        self.wfile.write(b"%x\r\n%b\r\n%b" % (len(data), data, end) if self._chunked else data)

    def _check_client(self) -> None:
        """Raise ConnectionError if the client is gone: after its request, only the connection's end
        can arrive."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        if ready and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionError

    def _pass_on(self, service: str, body: bytearray, until_sent: ExitStack) -> None:
        self.connection.settimeout(_ANSWER)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in (*_HOP, _NAME.lower())}
        with closing(self.server.waking.connected(service)) as inner:
            try:
                inner.request("POST", self.path, body, headers)
                body.clear()
                until_sent.close()
                answer = inner.getresponse()
            except (OSError, http.client.HTTPException):
                raise Later(f"{service} gives no answer", _SOON) from None
            if self._begun and answer.status != 200:
                # The head was sent already: send the error within the stream, as vLLM does.
                text = answer.read(_SMALL).replace(b"\n", b" ")
                self._write(b"data: " + text + b"\n\n", _END)
                return
            own = (*_HOP, "server", "date")
            fields = [item for item in answer.getheaders() if item[0].lower() not in own]
            if answer.length is not None:
                fields.append(("Content-Length", str(answer.length)))
            self._head(answer.status, *fields)
            while data := answer.read1(65536):
                self._write(data)
            if answer.length:
                raise ConnectionError  # cut off
            self._write(b"")  # the last chunk

    def _refuse(self, service: str, why: Later) -> None:
        runs = self.server.waking.asleep(service)
        error = {"message": f"{why}.", "type": "server_error", "code": 503, "running": runs}
        text = json.dumps({"error": error}).encode()
        if self._begun:
            self._write(b"data: " + text + b"\n\ndata: [DONE]\n\n", _END)
            return
        headers = {"Content-Type": "application/json", "Retry-After": str(why.seconds)}
        self._head(503, *headers.items(), ("Content-Length", str(len(text))))
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing: HAProxy logs every request with the name of its key."""


class WakeServer(ThreadingMixIn, UnixStreamServer):
    """Server on a socket that systemd opened."""

    daemon_threads = True

    def __init__(self, made: socket.socket, root: Path) -> None:
        super().__init__("", Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.waking = made, Waking(root)

    def handle_error(self, *_: object) -> None:
        """Ignore errors of a client that has left."""


def _streams(body: bytearray) -> bool:
    if len(body) > _SMALL:  # a parsed body would take many times its size
        return re.search(rb'"stream"\s*:\s*true', body) is not None
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("stream") is True


def main(services_root: str) -> int:
    """Serve forever on the socket that systemd passes as descriptor 3."""
    with socket.socket(fileno=3) as made:
        server = WakeServer(made, Path(services_root))
        idle = Idle(Path(services_root), server.waking.handled, server.waking.rest)
        threading.Thread(target=idle.watch, daemon=True).start()
        server.serve_forever()
    return 0
