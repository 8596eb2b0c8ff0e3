"""An address for all models on a host: HAProxy, the program, and engines behind them."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkwright.host.lib.records import encode
from sparkwright.host.models.document import Door, Key, Model
from sparkwright.host.models.report import UsageRequest, UsageRow, main
from tests.host.proxy.haproxy import HAPROXY, Answer, until, whole
from tests.host.serving import accepting, free_port

CHAT = "/v1/chat/completions"
KEYS = ("laptop", "guest", "metered")
PROGRAM = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); sys.path.insert(0, sys.argv[2]); "
    "from sparkwright.host.models import serve; sys.exit(serve.main(sys.argv[3]))"
)


def event(**fields: Any) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def chunks(events: Iterable[bytes], kind: str = "text/event-stream") -> Iterator[bytes]:
    """A chunked answer without its last chunk."""
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    for data in events:
        yield b"%x\r\n%b\r\n" % (len(data), data)


def body(data: object) -> Iterator[bytes]:
    """A JSON answer."""
    text = json.dumps(data).encode()
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    yield b"Content-Length: %d\r\n\r\n%b" % (len(text), text)


USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
OWN = event(choices=[], usage=USAGE)
MESSAGE = {"role": "assistant", "content": "ab"}
#: An answer with every field that a client reads.
ANSWER = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}  # fmt: skip
TOKENS = [event(choices=[{"delta": {"content": text}}]) for text in ("a", 'b"usage"')]


def completion(request: "Request") -> Iterator[bytes]:
    """The answer of an engine with OpenAI's API: two tokens."""
    if not request.body.startswith(b"{") or not request.json.get("stream"):
        yield from body(ANSWER)
        return
    events = list(TOKENS)
    if (request.json.get("stream_options") or {}).get("include_usage"):
        events.append(OWN)
    yield from chunks([*events, b"data: [DONE]\n\n"])
    yield b"0\r\n\r\n"


@dataclass
class Request:
    """A request as an engine received it."""

    head: str
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """A header's value."""
        match = re.search(rf"(?im)^{name}: *(.*?)\r?$", self.head)
        return match and match[1]


@dataclass
class Engine:
    """A server whose answers a test sets; bytes after a pause of the generator are sent separately.

    Attributes:
        left: requests whose client disconnected before the answer's end.
    """

    script: Callable[[Request], Iterable[bytes]] = completion
    requests: list[Request] = field(default_factory=list)
    left: int = 0

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        accepting(self._listening, self._serve)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file, suppress(OSError):
            head = b"".join(iter(file.readline, b"\r\n")).decode()
            length = re.search(r"(?i)content-length: (\d+)", head)
            request = Request(head, file.read(int(length[1]) if length else 0))
            self.requests.append(request)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for data in self.script(request):
                    connection.sendall(data)
            except OSError:
                self.left += 1


class Address:
    """The running address. The model ``small`` has an engine; ``large`` may sleep."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.small, self.large = Engine(), Engine()
        self.door = Door(
            "home",
            {
                "small": Model("small", "chat", 4096),
                "org/large": Model("large", "chat", wakes=True),
            },
            str(folder / "usage.db"),
            str(folder / "pools.sock"),
            {"guest": Key(models=("small",)), "metered": Key(requests_day=2)},
        )
        self.document = folder / "models.json"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "door.sock"))
        self._socket.listen(1024)
        self.programs: list[subprocess.Popen[bytes]] = []
        #: Folders in /proc of the address's serving processes.
        self.serving: list[Path] = []

    def write(self) -> None:
        """Write the document."""
        self.document.write_text(json.dumps(encode(self.door)))

    def start(self) -> None:
        """Start the program, as its unit does."""
        number, library = self._socket.fileno(), str(Path(__file__).parents[3])
        arguments = [str(number), library, str(self.document)]
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-IBS", "-c", PROGRAM, *arguments]
            process = subprocess.Popen(command, pass_fds=(number,), stdout=log, stderr=log)
        self.programs.append(process)
        until(lambda: self.get("/health").status == 200, "the program")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(children.read_text, "the process that serves")
        self.serving.append(Path("/proc", children.read_text().strip()))

    def connect(self) -> http.client.HTTPConnection:
        """A client's connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(
        self, method: str, path: str, data: Any = None, key: str = "laptop", **headers: str
    ) -> http.client.HTTPResponse:
        """Send a request, and return its answer as it begins; an iterator is sent in chunks."""
        text = json.dumps(data).encode() if isinstance(data, dict) else data
        connection = self.connect()
        connection.request(method, path, text, {"Authorization": f"Bearer {key}", **headers})
        return connection.getresponse()

    def get(self, path: str, key: str = "laptop") -> Answer:
        """A GET request's answer."""
        return whole(self.ask("GET", path, key=key))

    def post(self, data: Any, path: str = CHAT, key: str = "laptop", **headers: str) -> Answer:
        """A POST request's answer."""
        return whole(self.ask("POST", path, data, key, **headers))

    def usage(self) -> list[UsageRow]:
        """Rows of the database."""
        return list(main(UsageRequest(self.door.usage, "2000-01-01")))

    def counted(self, requests: int) -> UsageRow:
        """Return the only row, once it has this many requests."""
        until(lambda: sum(row.requests for row in self.usage()) == requests, "the count")
        (row,) = self.usage()
        return row


@contextmanager
def running() -> Iterator[Address]:
    """An address behind a real HAProxy, until the block ends."""
    assert HAPROXY
    folder = Path(tempfile.mkdtemp(prefix="address-"))
    address = Address(folder)
    (folder / "keys.map").write_text("".join(f"{key} {key}\n" for key in KEYS))
    variables = {"FOLDER": folder, "PORT": address.port}
    variables |= {"SMALL": address.small.port, "LARGE": address.large.port}
    environment = {name: str(value) for name, value in variables.items()}
    command = [HAPROXY, "-db", "-f", str(Path(__file__).with_name("haproxy.cfg"))]
    with (folder / "haproxy.log").open("wb") as log:
        haproxy = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        until((folder / "pools.sock").exists, "HAProxy")
        address.write()
        address.start()
        yield address
    finally:
        for process in (haproxy, *address.programs):
            process.kill()
            process.wait()
        for serving in address.serving:
            with suppress(ProcessLookupError):
                os.kill(int(serving.name), signal.SIGKILL)
        until(lambda: not any(map(Path.exists, address.serving)), "the programs' end")
        shutil.rmtree(folder)
