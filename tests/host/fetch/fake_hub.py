"""A fake Hugging Face hub and its CDN, small enough to break in any way that a test needs.

The fake answers the fetch program's requests: model info, and HEAD/GET resolve with the headers
X-Repo-Commit, X-Linked-ETag and X-Linked-Size. Requests for LFS files are redirected to the CDN,
which listens on another address (127.0.0.2) and gives ranges.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from tests.host.serving import Handler, listening

COMMIT = "c0ffee" + "0" * 34
TOKEN = "hf_fake"


@dataclass
class Hit:
    """A received request."""

    where: str
    method: str
    path: str
    headers: dict[str, str]
    sent: int = 0


@dataclass
class Fault:
    """A fault for `times` GETs of the CDN whose path ends with `path`."""

    path: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int = -1
    corrupt_at: int = -1
    hang_after: int = -1


@dataclass
class FakeHub:
    """The hub's content, its faults, and its requests."""

    files: dict[str, bytes] = field(default_factory=dict)
    lfs: set[str] = field(default_factory=set)
    gated: bool = False
    redirects: bool = True  # False: the hub itself serves the LFS files
    ranges: bool = True
    rate: int = 0  # bytes/s of each CDN connection, 0 for no limit
    faults: list[Fault] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    hub_port: int = 0
    cdn_port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.hub_port}"

    def add(self, path: str, content: bytes, lfs: bool = False) -> None:
        """Add a file; large safetensors files get a safetensors header in place of their start."""
        self.files[path] = (
            safetensors(content) if path.endswith(".safetensors") and lfs else content
        )
        if lfs:
            self.lfs.add(path)

    def listing(self) -> list[dict[str, Any]]:
        """Return the files as a lock would list them."""
        return [
            {
                "path": path,
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest() if path in self.lfs else None,
                "blob_id": None if path in self.lfs else blob_id(content),
            }
            for path, content in self.files.items()
        ]

    def fault(self, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if path.endswith(fault.path) and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def sent(self) -> int:
        """Bytes of file content that were sent."""
        return sum(hit.sent for hit in self.hits)

    def wait_for(self, ready: Callable[[], bool], seconds: float = 10.0) -> None:
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end, "the fetch never got that far"
            time.sleep(0.01)


def safetensors(content: bytes) -> bytes:
    """Return content of the same size that is a safetensors file of one tensor."""
    tensor = {"dtype": "U8", "shape": [0], "data_offsets": [0, len(content) - 8 - 128]}
    header = json.dumps({"all": tensor}).encode().ljust(128)
    return len(header).to_bytes(8, "little") + header + content[8 + 128 :]


def blob_id(content: bytes) -> str:
    """Return git's sha1 of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(Handler):
    fake: FakeHub
    where: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0])
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.hit = Hit(self.where, self.command, path, headers)
        with self.fake.lock:
            self.fake.hits.append(self.hit)
        try:
            if self.where == "cdn":
                self._content(path.lstrip("/"))
            else:
                self._hub(path)
        except OSError:
            self.close_connection = True

    do_HEAD = do_GET

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.reply(status, headers={"X-Error-Code": code, "X-Error-Message": message})

    def _hub(self, path: str) -> None:
        fake = self.fake
        good = self.hit.headers.get("authorization") == f"Bearer {TOKEN}"
        if "org/model" not in path:
            self._refuse(401, "RepoNotFound", "Repository not found")
        elif COMMIT not in path:
            self._refuse(404, "RevisionNotFound", "Invalid rev id")
        elif path.startswith("/api/models/org/model/revision/"):
            self.reply(200, json.dumps({"id": "org/model", "sha": COMMIT}).encode())
        elif fake.gated and not good:
            self._refuse(401, "GatedRepo", "Access is restricted")
        else:
            self._resolve(path.split(f"/resolve/{COMMIT}/", 1)[1])

    def _resolve(self, name: str) -> None:
        content = self.fake.files.get(name)
        if content is None:
            self._refuse(404, "EntryNotFound", "Entry not found")
        elif name in self.fake.lfs and self.fake.redirects:
            port = self.fake.cdn_port
            self.reply(
                302,
                headers={
                    "Location": f"http://127.0.0.2:{port}/{quote(name)}?X-Signature=secret",
                    "X-Repo-Commit": COMMIT,
                    "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"',
                    "X-Linked-Size": str(len(content)),
                },
            )
        else:
            self._content(name)

    def _content(self, name: str) -> None:
        content = self.fake.files[name]
        fault = self.fake.fault(name) if self.command == "GET" else None
        if fault and fault.status:
            self.reply(fault.status, headers=fault.headers)
            return
        start, end, asked = 0, len(content), self.headers.get("Range")
        if asked and self.fake.ranges:
            first, last = asked.removeprefix("bytes=").split("-")
            start, end = int(first), min(len(content), int(last) + 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{blob_id(content)}"')
        self.end_headers()
        if self.command == "GET":
            self._body(content, start, end, fault)

    def _body(self, content: bytes, start: int, end: int, fault: Fault | None) -> None:
        body = bytearray(content[start:end])
        if fault and fault.corrupt_at >= 0 and fault.corrupt_at < len(body):
            body[fault.corrupt_at] ^= 0xFF
        stop = len(body)
        for limit in (fault.cut_after, fault.hang_after) if fault else ():
            stop = min(stop, limit) if limit >= 0 else stop
        step = max(1, self.fake.rate // 50) if self.fake.rate else 1 << 20
        for at in range(0, stop, step):
            piece = body[at : min(at + step, stop)]
            self.wfile.write(piece)
            self.hit.sent += len(piece)
            if self.fake.rate:
                time.sleep(0.02)
        if fault and fault.hang_after >= 0:
            time.sleep(3)
        if stop < len(body):
            self.close_connection = True


@contextmanager
def serving() -> Iterator[FakeHub]:
    """Serve a fake hub on 127.0.0.1 and its CDN on 127.0.0.2, both on free ports."""
    fake = FakeHub()
    with (
        listening(_Handler, fake=fake, where="hub") as fake.hub_port,
        listening(_Handler, "127.0.0.2", fake=fake, where="cdn") as fake.cdn_port,
    ):
        yield fake
