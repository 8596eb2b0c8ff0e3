"""Serve this host's models and images to peers and to its own Docker, even during their download.

systemd, or for a bundle the controller, opens the port and passes the socket on, so no local
program can take the port. The server ends after some time without an authenticated request.

`GET /challenge` returns a challenge. `GET /files/models/<org--name>/<commit>/<path>` and
`/files/images/<digest>/<path>`, signed with the challenge, return a range of a file of at most
PIECE bytes. With `?ranges`, both addresses list the ranges that are on the disk, whether a fetch
runs that will add more ("alive"), and whether the file will not change any more ("ended"). Every
answer to a signed request has a signature, which covers the body's hash, and contains the next
challenge.

`/v2/` is a read-only container registry of this host's images, for its own Docker. The registry
sends a blob's bytes as they arrive, so that Docker unpacks during the download. Docker can't sign
requests: it sends a password with Basic authentication, which is valid over loopback only.
"""

import base64
import hashlib
import hmac
import io
import json
import os
import re
import signal
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event, Thread
from typing import Any

from sparkwright.host.fetch import messages, peer_auth, peer_files, peers, request
from sparkwright.host.fetch.peer_files import OpenFile, Revision
from sparkwright.host.lib import bounded, documents, records
from sparkwright.host.lib.connections import Bounded, Connections

#: The first descriptor that systemd passes (sd_listen_fds(3)).
_FIRST_PASSED = 3
#: Seconds between two checks whether the server must end.
_LOOK = 0.2
#: Largest number of simultaneous connections, in total and with one address.
MOST = 256
MOST_OF_ONE = 64
#: Number of bytes in one read from the disk.
_BLOCK = 256 << 10
#: Largest size of a request's head in bytes, and seconds for the head: from an unknown client, and
#: until a known peer's next request.
_HEAD = 16 << 10
UNKNOWN, _KNOWN = 10.0, 60.0
#: Headers that may occur once only: two readers could choose different values.
_ONCE = ("Authorization", "Content-Length", "Host", "Range", "Transfer-Encoding")
#: Seconds for sending a head, a piece to a peer, and a piece to Docker, which may be busy.
_HEAD_TIME, _PIECE_TIME, _DOCKER_TIME = 10.0, 60.0, 120.0
#: Seconds for the other side to read the answer to a refused TLS handshake.
_LAST = 0.5
#: Seconds that Docker's request waits for a fetch to start or to continue, and between two checks.
_PATIENCE, _WAIT = 10.0, 0.1
_LARGEST_MANIFEST = 4 << 20
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_KIND = re.compile(r"application/[\w.+-]{1,100}", re.ASCII)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})", re.ASCII)


class PeerServer:
    """Server on sockets that already listen."""

    def __init__(self, request: request.PeerServerRequest, listening: list[socket.socket]) -> None:
        self.request = request
        self.connections = Connections(MOST, MOST_OF_ONE)
        self._listening = listening
        self._last = time.monotonic()
        #: Event that ends the server, from any thread or signal handler.
        self.ended = Event()
        self.tls: ssl.SSLContext | None = None
        if request.certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(request.certificate)

    def used(self, connection: socket.socket) -> None:
        """Restart the idle time, after a request with a key."""
        self.connections.identified(connection)
        self._last = time.monotonic()

    def run(self) -> None:
        """Serve until the server is stopped, was idle for long enough, or has lost its files.

        If a user empties /opt/sparkwright by hand, the server loses access to the directories, and
        would refuse every request until its idle time ends.
        """

        def converse(connection: socket.socket, address: Any, _: object) -> None:
            Conversation(connection, address, self)  # type: ignore[arg-type]

        servers = [Bounded(each, converse, self.connections) for each in self._listening]
        for server in servers:
            Thread(target=server.serve_forever, args=(_LOOK,), daemon=True).start()
        while not self.ended.wait(_LOOK) and Path(self.request.keys).is_dir():
            if time.monotonic() - self._last > self.request.idle:
                break
        self.ended.set()
        for server in servers:
            server.shutdown()


class Conversation(BaseHTTPRequestHandler):
    """A connection: its requests are answered in order until either side closes the connection.

    http.server limits the time of one read, not of a whole head: a client that sends a byte now and
    then would hold a connection forever. This server bounds every head in size and time.
    """

    protocol_version = default_request_version = request_version = "HTTP/1.1"

    server: PeerServer  # type: ignore[assignment]
    _challenge = ""
    _is_known = False
    #: Function that signs the answer to a signed request: status, range and hash of the body.
    _sign: Callable[..., str] | None = None

    def setup(self) -> None:
        self.connection = self.request
        if self.server.tls and not is_own_docker(self.client_address[0]):
            self.request.settimeout(UNKNOWN)  # one limit for the whole handshake
            # TLS gets a copy of the socket: Connections ends the original, even during a handshake.
            self.connection = self.server.tls.wrap_socket(self.request.dup(), server_side=True)
            self.connection.settimeout(None)
        self._guard = bounded.Guarded(self.connection, _HEAD, UNKNOWN)
        self.rfile = self._reader = io.BufferedReader(self._guard)
        self.wfile = self.connection.makefile("wb")

    def handle_one_request(self) -> None:
        self._sign = None
        self._guard.allow(_HEAD, _KNOWN if self._is_known else UNKNOWN)
        if self._reader.peek(1)[:1] == b"\x16":
            # This byte begins a TLS handshake. Docker with containerd's image store retries without
            # TLS only after an answer in HTTP.
            self.send_error(400)
            # Read all input before closing: unread bytes would reset the connection.
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self._guard.allow(_HEAD, _LAST)
            self._reader.read()
        else:
            super().handle_one_request()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer an invalid request, and close the connection."""
        self._head(400, Connection="close")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, since anybody can send requests."""

    def do_GET(self) -> None:
        """Answer a request."""
        path, _, query = self.path.partition("?")
        # Refuse headers that two readers could understand differently, and requests with a body.
        twice = [name for name in _ONCE if len(self.headers.get_all(name, [])) > 1]
        body = self.headers.get("Content-Length", "0") != "0" or self._header("Transfer-Encoding")
        if twice or body or self.headers.defects or not path.startswith("/"):
            self.send_error(400)
        elif path.startswith("/v2/"):
            self._docker(path)
        elif self.path == "/challenge":
            self._head(200)
        elif not self._is_signed():
            self._head(401)
        else:
            self._used()
            self._file(path, query)

    do_HEAD = do_GET

    def _header(self, name: str) -> str:
        return self.headers.get(name, "")

    def _used(self) -> None:
        self._is_known = True
        self.server.used(self.request)

    def _is_signed(self) -> bool:
        challenge, self._challenge = self._challenge, ""
        claimed = peer_auth.claimed(self._header("Authorization"))
        if claimed is None or not challenge or self.command != "GET":
            return False
        run, peer, number, made = claimed
        server_key = peer_files.run_key(self.server.request.keys, run)
        if server_key is None:
            return False
        key = peer_auth.peer_key(server_key, peer)
        request = (challenge, self.command, self.path, self._header("Range"))
        signed = (number, *request, peer_auth.EMPTY)
        if hmac.compare_digest(made, peer_auth.mac(key, "request", *signed)):
            self._sign = partial(peer_auth.answer, key, number, *request)
        return self._sign is not None

    def _file(self, path: str, query: str) -> None:
        names, request = peer_files.names(path) or [""], self.server.request
        result = peer_files.revision(request, names[1:]) if names[0] == "files" else None
        if result is None or query not in ("", "ranges"):
            self._head(404)
            return
        revision, below = result
        file = revision.find(below)
        with file or nullcontext():
            if query == "ranges":
                ranges = tuple(file.available()) if file else ()
                held = peers.Held(ranges, revision.fetching(), revision.ended())
                body = json.dumps(records.encode(held)).encode()
                self._head(200, len(body), hashlib.sha256(body).hexdigest())
                self.wfile.write(body)
            elif file:
                self._piece(file)
            else:
                self._head(404)

    def _piece(self, file: OpenFile) -> None:
        wanted = _RANGE.fullmatch(self._header("Range"))
        start, end = (int(wanted[1]), int(wanted[2]) + 1) if wanted and wanted[2] else (0, 0)
        if not 0 < end - start <= peers.PIECE or end > file.size:
            self._head(416)
            return
        # Read the bytes twice, the second time from the page cache: the signature goes first, and
        # this process holds no copy.
        hashed, at = hashlib.sha256(), start
        while at < end:
            block = os.pread(file.descriptor, min(_BLOCK, end - at), at)
            if not block:
                raise ConnectionAbortedError("the file became shorter")
            hashed.update(block)
            at += len(block)
        content_range = f"bytes {start}-{end - 1}/{file.size}"
        self._head(206, end - start, hashed.hexdigest(), Content_Range=content_range)
        self._send_file(file.descriptor, start, end, _PIECE_TIME)

    def _head(
        self, status: int, length: int = 0, hashed: str = peer_auth.EMPTY, **headers: str
    ) -> None:
        """Send the head of an answer, with the challenge for the next request."""
        self._challenge = peer_auth.nonce()
        headers |= {"Content_Length": str(length), "Sparkwright_Challenge": self._challenge}
        if self._sign is not None:
            content_range = headers.get("Content_Range", "")
            headers["Sparkwright_Answer"] = self._sign(str(status), content_range, hashed)
        self.connection.settimeout(_HEAD_TIME)
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _send_file(self, descriptor: int, start: int, end: int, seconds: float) -> None:
        """Send a range of a file within ``seconds``; only TLS needs a copy in memory."""
        self.wfile.flush()
        deadline = time.monotonic() + seconds
        with open(descriptor, "rb", closefd=False) as file:
            while start < end:
                self.connection.settimeout(max(0.01, deadline - time.monotonic()))
                if isinstance(self.connection, ssl.SSLSocket):
                    # The socket's own sendfile() reads 8 KiB at a time.
                    block = os.pread(descriptor, min(end - start, 1 << 20), start)
                    sent = self.connection.send(block)
                else:
                    sent = self.connection.sendfile(file, start, min(end - start, 1 << 20))
                if not sent or time.monotonic() > deadline:
                    raise TimeoutError("the client does not read its answer")
                start += sent

    def _docker(self, path: str) -> None:
        if not is_own_docker(self.client_address[0]):
            self._head(404)
            return
        if not self._has_password():
            self._head(401, WWW_Authenticate='Basic realm="sparkwright"')
            return
        self._used()
        names = peer_files.names(path) or []
        digest = _DIGEST.fullmatch(names[-1]) if len(names) > 3 else None
        is_file = digest is not None and names[-2] in ("manifests", "blobs")
        result = self._wait_for(digest[1]) if digest and is_file else None
        if digest is None or result is None:
            self._head(200 if path == "/v2/" else 404, Content_Type="text/plain")
            return
        image, file = result
        with file:
            kind = _media_type(file) if names[-2] == "manifests" else "application/octet-stream"
            self._blob(image, file, digest[1], kind)

    def _has_password(self) -> bool:
        scheme, _, given = self._header("Authorization").partition(" ")
        try:
            account = base64.b64decode(given, validate=True).decode("ascii")
        except ValueError:
            return False
        run, _, password = account.partition(":")
        key = peer_files.run_key(self.server.request.keys, run) if scheme == "Basic" else None
        return key is not None and hmac.compare_digest(password, peer_auth.docker_password(key))

    def _wait_for(self, digest: str) -> tuple[Revision, OpenFile] | None:
        """Wait for a blob to appear. Small blobs must be complete, since manifests are parsed."""
        until = time.monotonic() + _PATIENCE
        while not self.server.ended.is_set():
            images = peer_files.images(self.server.request.images)
            for image in images:
                if file := image.find((digest,)):
                    if file.complete or file.size > 1 << 20:
                        return image, file
                    os.close(file.descriptor)
            if any(image.fetching() for image in images):
                until = time.monotonic() + _PATIENCE
            elif time.monotonic() > until:
                return None
            self._used()
            time.sleep(_WAIT)
        return None

    def _blob(self, image: Revision, file: OpenFile, digest: str, kind: str) -> None:
        start, end = _clipped(self._header("Range"), file.size)
        headers = {"Content_Type": kind, "Docker_Content_Digest": f"sha256:{digest}"}
        status = 200
        if (start, end) != (0, file.size):
            headers["Content_Range"] = f"bytes {start}-{end - 1}/{file.size}"
            status = 206
        self._head(status, end - start, Accept_Ranges="bytes", **headers)
        at, idle = start, time.monotonic()
        while self.command == "GET" and at < end:
            settled = [last for first, last in file.available() if first <= at < last]
            if settled:
                upto = min(end, settled[0], at + peers.PIECE)
                self._send_file(file.descriptor, at, upto, _DOCKER_TIME)
                at, idle = upto, time.monotonic()
            elif self._has_its_name(image, file, digest):
                file = replace(file, complete=True)
            else:
                if image.fetching():
                    idle = time.monotonic()
                if self.server.ended.is_set() or time.monotonic() - idle > _PATIENCE:
                    raise ConnectionAbortedError("the fetch or this server ended")
                time.sleep(_WAIT)
            self._used()

    def _has_its_name(self, image: Revision, file: OpenFile, digest: str) -> bool:
        """Return whether a part has been verified and renamed. Raises OSError if the part was
        replaced or removed.
        """
        if (now := image.find((digest,))) is None:
            raise ConnectionAbortedError("the part was removed")
        with now:
            if not os.path.sameopenfile(now.descriptor, file.descriptor):
                raise ConnectionAbortedError("the part was replaced")
            return now.complete


def _media_type(file: OpenFile) -> str:
    """Return the media type that a manifest names."""
    manifest = documents.parsed(os.pread(file.descriptor, _LARGEST_MANIFEST, 0)) or {}
    kind = str(manifest.get("mediaType"))
    return kind if _KIND.fullmatch(kind) else _MANIFEST


def _clipped(header: str, size: int) -> tuple[int, int]:
    """Return a Range header's range, clipped to the file; the whole file if the header is
    invalid.
    """
    if (match := _RANGE.fullmatch(header)) is None:
        return 0, size
    start, last = int(match[1]), int(match[2]) if match[2] else size - 1
    return (start, min(last + 1, size)) if start < size and start <= last else (0, size)


def is_own_docker(address: str) -> bool:
    """Return whether a client's address is this host's own."""
    return address.startswith("127.") or address == "::1"


def listening() -> list[socket.socket]:
    """Return the sockets that systemd passes, or the controller's socket on standard input.

    Raises:
        OSError: there is no socket.
    """
    first, count = 0, 1
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        first, count = _FIRST_PASSED, int(os.environ.get("LISTEN_FDS", "0"))
    return [socket.socket(fileno=number) for number in range(first, first + count)]


def run(request_path: Path, _runtime: Path | None) -> int:
    """Serve until the server was idle for long enough, or until a signal. Returns the exit code."""
    try:
        server = PeerServer(request.read(request.PeerServerRequest, request_path), listening())
    except (messages.Failed, OSError) as error:
        messages.log(str(error))
        return messages.FAILED
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.ended.set())
    server.run()
    return messages.OK
