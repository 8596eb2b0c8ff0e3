"""A real HAProxy with rendered files, started as the unit starts it, and a client."""

import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparkwright.config.secrets import Secret
from sparkwright.host.proxy.place import (
    PROCESSES,
    SERVERS,
    STATES,
    ServerState,
    busy,
    kept,
    server_states,
    workers,
)
from sparkwright.proxy.haproxy import (
    Proxies,
    Proxy,
    Replica,
    engine_map,
    kept_servers,
    key_map,
    render_proxies,
)
from tests.host.proxy.backend import PATIENCE, Backend
from tests.host.serving import free_port

KEY = "sk-the-key-of-this-test-0123456789"
ENGINE = Secret("sk-the-engine-has-this-one-0123456789")
ADDRESS = Secret("sk-the-address-shows-this-0123456789")
WEBSOCKET_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def until(
    true: Callable[[], Any], reason: str = "the condition of a test", patience: float = PATIENCE
) -> None:
    """Wait for a condition that is about to be true."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"never came: {reason}"
        time.sleep(0.01)


def replica(backend: Backend) -> Replica:
    """A backend of a test in the form of the proxy's configuration."""
    return Replica(backend.name, "127.0.0.1", backend.port, backend.health_port)


@dataclass
class Answer:
    """Answer that a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class RunningProxy:
    """A running HAProxy with one proxy named ``llm``."""

    def __init__(self, proxies: Proxies) -> None:
        self.proxies = proxies
        self.process: subprocess.Popen[bytes] | None = None
        self.context: ssl.SSLContext | None = None
        runtime = Path(proxies.runtime)
        runtime.mkdir()
        (runtime / "pools").mkdir()
        self._notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notified.bind(str(runtime / "notify"))
        self._notified.settimeout(PATIENCE)
        self.log = runtime.parent / "log"

    @property
    def port(self) -> int:
        return self.proxies.proxies[0].port

    # Start, reload and end HAProxy, as systemd does.

    def write(self, keys: tuple[str, ...] = (KEY,), named: Mapping[str, str] | None = None) -> None:
        """Write the files; the host's own key is named ``sparkwright``."""
        files = render_proxies(self.proxies)
        Path(self.proxies.home).mkdir(exist_ok=True)
        Path(self.proxies.config).write_text(files.config)
        Path(self.proxies.waiting_room).write_text(files.waiting_room)
        for position, (text, mode) in self.proxies.tls_files.items():
            Path(position).parent.mkdir(exist_ok=True)
            Path(position).touch(mode=mode)
            Path(position).write_text(text)
        clients = {"default": [Secret(key) for key in keys]}
        clients |= {name: [Secret(key)] for name, key in (named or {}).items()}
        clients["address"] = [ADDRESS]
        texts = {
            self.proxies.keys: key_map(clients),
            self.proxies.engine: engine_map(ENGINE, ADDRESS),
        }
        for path, text in texts.items():
            secret = Path(path)
            secret.touch(mode=0o600)
            secret.write_text(text)

    def change(self, *, replicas: tuple[Replica, ...] | None = None, **settings: Any) -> None:
        """Change settings, or the replicas, and reload."""
        if replicas is not None:
            settings["proxies"] = (replace(self.proxies.proxies[0], replicas=replicas),)
        self.proxies = replace(self.proxies, **settings)
        self.write()
        self.reload()

    def command(self) -> list[str]:
        """The command line of the unit."""
        match = re.search(r"^ExecStart=(.*)$", render_proxies(self.proxies).unit, re.MULTILINE)
        assert match
        assert HAPROXY
        return [HAPROXY, *shlex.split(match[1])[1:]]

    def start(self) -> None:
        """Start HAProxy; return when it reports that it is ready."""
        environment = {**os.environ, "NOTIFY_SOCKET": str(Path(self.proxies.runtime) / "notify")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command(), env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        self._until_ready()

    def reload(self, *, keeping: bool = True) -> None:
        """Reload the files; return when a new worker takes new requests."""
        assert self.process
        states = Path(self.proxies.states)
        if keeping:
            states.write_text(kept(self.ask(STATES), kept_servers(self.proxies)))
        before = set(self.workers())
        self.process.send_signal(signal.SIGUSR2)
        self._until_ready()
        until(lambda: set(self.workers()) - before, "a new worker")
        # A former worker accepts connections, with the former keys, until the new worker's signal.
        until(lambda: not any(map(self._accepts, before)), "the end of the former workers")
        states.unlink(missing_ok=True)

    def _accepts(self, worker: int) -> bool:
        return "Stopping: 0" in self.ask(f"@!{worker} show info", master=True)

    def stop(self) -> None:
        """End master and workers."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._notified.close()

    def _until_ready(self) -> None:
        for _ in range(100):
            try:
                states = self._notified.recv(4096).splitlines()
            except TimeoutError:
                raise AssertionError(self.log.read_text()) from None
            if b"READY=1" in states:
                return
        raise AssertionError("never ready")

    # The runtime API.

    def ask(self, command: str, *, master: bool = False) -> str:
        """Answer of the runtime API."""
        position = self.proxies.master_socket if master else self.proxies.admin_socket
        answers: list[str] = []

        def asked() -> bool:
            # The master reports READY a moment before it listens, and drops waiting connections
            # meanwhile.
            with contextlib.suppress(ConnectionError), socket.socket(socket.AF_UNIX) as api:
                api.settimeout(PATIENCE)
                api.connect(position)
                api.sendall(f"{command}\n".encode())
                api.shutdown(socket.SHUT_WR)
                answers.append(b"".join(iter(lambda: api.recv(65536), b"")).decode())
            return bool(answers)

        until(asked, position)
        return answers[0]

    def put(self, name: str, state: str) -> str:
        """Set a replica to ``drain`` or ``ready``; the answer is empty on success."""
        return self.ask(f"set server llm/{name} state {state}").strip()

    def workers(self) -> list[int]:
        """The workers, including former workers."""
        return workers(self.ask(PROCESSES, master=True))

    def running(self, name: str) -> int:
        """The requests on a replica, over all workers."""
        self.workers()  # a master of HAProxy 2.8 listens a moment after its first answers
        return busy(self.proxies.master_socket, "llm", name)

    def sessions(self) -> int:
        """Requests of the newest worker, including requests that wait for a replica."""
        rows = self.ask("show stat -1 1 -1").splitlines()
        names, values = rows[0].split(","), rows[1].split(",")
        return int(values[names.index("scur")])

    def state(self, name: str) -> ServerState:
        """A replica as the newest worker sees it."""
        return server_states(self.ask(SERVERS))["llm", name]

    def until_status(self, name: str, status: str) -> None:
        """Wait until the worker sees a replica in this state."""
        until(lambda: self.state(name).status == status, f"{name} {status}")

    # Clients.

    def connect(self) -> http.client.HTTPConnection:
        """A client's connection; by https if a test has set its CA."""
        if self.context:
            return http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=PATIENCE, context=self.context
            )
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = KEY,
        headers: dict[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        """Send a request; return when the header of the answer has arrived. The body may still be
        under way.
        """
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        connection = self.connect()
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, content, {**sent, **(headers or {})})
        return connection.getresponse()

    def get(self, path: str, **options: Any) -> Answer:
        """Send a GET and read its answer."""
        return whole(self.send("GET", path, **options))

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a POST and read its answer."""
        return whole(self.send("POST", path, {} if body is None else body, **options))

    def send_later(self, path: str, body: Any = None) -> Future[Answer]:
        """Send a POST without waiting for its answer."""
        future: Future[Answer] = Future()

        def run() -> None:
            try:
                future.set_result(self.post(path, body))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def upgrades(self, key: str | None = KEY) -> bool:
        """Open a websocket on the realtime route; return whether it echoes."""
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(
                f"GET /v1/realtime HTTP/1.1\r\nHost: x\r\n{authorization}"
                "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Key: {WEBSOCKET_KEY}\r\n\r\n".encode()
            )
            upgraded = connection.recv(4096).startswith(b"HTTP/1.1 101")
            connection.sendall(b"to and fro")
            return upgraded and connection.recv(4096) == b"to and fro"

    def raw(self, data: bytes, *, leave: bool = False) -> bytes:
        """Send raw bytes; return the answer until the proxy closes the connection.

        Args:
            leave: whether to end the sending side, for an incomplete request.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            if leave:
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while data := _received(connection):
                received += data
            return received


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def whole(response: http.client.HTTPResponse) -> Answer:
    """An answer read to its end."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def proxies_of(home: Path, replicas: tuple[Replica, ...], **settings: Any) -> Proxies:
    """HAProxy with one proxy, whose files and sockets are below a directory of the test."""
    proxy = Proxy("llm", free_port(), replicas, bind="127.0.0.1", health_path="/generates")
    proxies = Proxies(
        proxies=(proxy,),
        home=f"{home}/home",
        runtime=f"{home}/run",
        # Only root can change to another user.
        user="haproxy" if os.geteuid() == 0 else None,
        check_milliseconds=50,
    )
    return replace(proxies, **settings)


@contextmanager
def opened(proxies: Proxies, keys: tuple[str, ...] = (KEY,)) -> Iterator[RunningProxy]:
    """An HAProxy that runs until the block ends."""
    proxy = RunningProxy(proxies)
    try:
        proxy.write(keys)
        proxy.start()
        yield proxy
    finally:
        proxy.stop()
