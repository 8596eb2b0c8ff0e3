"""Fixtures: a fake hub with a small repository, the lab's hub, and a runner of the program."""

import contextlib
import io
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hf_transfer
import pytest
import requests

from lab.hub.repositories import make
from lab.hub.serving import running
from lab.hub.store import Repository
from sparkwright.host.fetch import job
from tests.host.fetch.fake_hub import COMMIT, FakeHub, serving

HOST = Path(__file__).parents[3] / "sparkwright" / "host" / "fetch"
# The tests take the libraries from their own environment; test_runtime.py uses a real bundle.
RUNTIME = Path(hf_transfer.__file__).parents[1]
MIB = 1 << 20


@dataclass
class Fetch:
    """Runner of the program, as on a host, against the fake hub."""

    hub: FakeHub
    root: Path
    runtime: Path = RUNTIME

    @property
    def destination(self) -> Path:
        return self.root / "models" / "org--model" / COMMIT

    @property
    def stage(self) -> Path:
        return self.destination.parent / f".staging-{COMMIT}"

    def request(self, **changes: Any) -> Path:
        document = {
            "endpoint": self.hub.endpoint,
            "repo": "org/model",
            "revision": COMMIT,
            "destination": str(self.destination),
            "state_dir": str(self.root / "state"),
            "files": self.hub.listing(),
            "downloader": "http",  # starts faster than hf_transfer, which some tests name
            "chunk_size": 128 << 10,
            "max_connections": 8,
            "headroom": 0,
            "retries": 4,
            "backoff": 0.05,
            "stall": 10,
            **changes,
        }
        path = self.root / "request.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def start(self, **changes: Any) -> subprocess.Popen[str]:
        request = self.request(**changes)
        command = [sys.executable, "-I", "-S", str(HOST / "fetch.py")]
        command += ["--runtime", str(self.runtime), str(request)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def run(self, **changes: Any) -> tuple[int, str]:
        """Run the program as on a host. Return (exit code, output on stderr)."""
        process = self.start(**changes)
        _, output = process.communicate(timeout=60)
        return process.returncode, output

    def here(self, **changes: Any) -> tuple[int, str]:
        """Run the program as run() does, but in this process, which saves half a second of
        imports."""
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            code = job.run(self.request(**changes), self.runtime)
        return code, output.getvalue()

    def complete(self, *messages: str, apart: bool = False, **changes: Any) -> str:
        """Fetch everything, here or as on a host, with messages on stderr. Returns all messages."""
        code, output = (self.run if apart else self.here)(**changes)
        assert code == 0, output
        assert not [message for message in messages if message not in output], output
        if "destination" not in changes:
            self.assert_whole()
        return output

    def fail(self, *messages: str, code: int = 1, apart: bool = False, **changes: Any) -> str:
        """Fetch, and fail with messages on stderr. Returns all messages."""
        ended, output = (self.run if apart else self.here)(**changes)
        assert ended == code, output
        assert not [message for message in messages if message not in output], output
        assert "Traceback" not in output
        return output

    def progress(self) -> dict[str, Any]:
        text = (self.root / "state" / "progress.json").read_text(encoding="utf-8")
        document: dict[str, Any] = json.loads(text)
        return document

    def assert_whole(self) -> None:
        """Assert that the destination holds all of the hub's files, as real files."""
        for path, content in self.hub.files.items():
            file = self.destination / path
            assert file.is_file()
            assert not file.is_symlink()
            assert file.read_bytes() == content, path
        assert not self.stage.exists()


class LabHub:
    """A running hub, its repositories, and the calls that control it."""

    def __init__(self, endpoint: str, repositories: list[Repository]) -> None:
        self.endpoint = endpoint
        self.repositories = {repository.id: repository for repository in repositories}

    def fault(self, **order: Any) -> None:
        requests.post(f"{self.endpoint}/control", json=order, timeout=5).raise_for_status()

    def reset(self) -> None:
        requests.delete(f"{self.endpoint}/control", timeout=5).raise_for_status()
        requests.delete(f"{self.endpoint}/control/counters", timeout=5).raise_for_status()

    def counters(self) -> dict[str, Any]:
        answer: dict[str, Any] = requests.get(f"{self.endpoint}/control/counters", timeout=5).json()
        return answer

    def request(self, fetch: Fetch, name: str, **changes: Any) -> dict[str, Any]:
        """Return the result of a change to a repository's newest commit."""
        commit = self.repositories[name].commits[-1]
        return {
            "endpoint": self.endpoint,
            "repo": name,
            "revision": commit.id,
            "destination": str(self.directory(fetch, name)),
            "files": [
                {
                    "path": file.path,
                    "size": file.size,
                    "sha256": file.sha256 if file.lfs else None,
                    "blob_id": None if file.lfs else file.blob_id,
                }
                for file in commit.files
            ],
            "downloader": "hf_transfer",
            "chunk_size": 64 << 10,
            **changes,
        }

    def commit(self, name: str) -> str:
        """A repository's newest commit."""
        return self.repositories[name].commits[-1].id

    def directory(self, fetch: Fetch, name: str) -> Path:
        return fetch.root / "models" / name.replace("/", "--") / self.commit(name)


@pytest.fixture(scope="session")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHub]:
    data = tmp_path_factory.mktemp("hub")
    repositories = make(data, scale=0.1)
    with running(data, cdn_host="localhost") as endpoint:
        yield LabHub(endpoint, repositories)


@pytest.fixture
def lab(running_lab: LabHub) -> LabHub:
    """The hub of the lab with its miniature repositories and without faults."""
    running_lab.reset()
    return running_lab


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    rng = random.Random(0)
    with serving() as fake:
        fake.add("config.json", b'{"model_type": "fake"}\n')
        fake.add("tokenizer/vocab.json", rng.randbytes(70_001))
        fake.add("empty.txt", b"")
        fake.add("model-00001-of-00002.safetensors", rng.randbytes(2 * MIB), lfs=True)
        fake.add("model-00002-of-00002.safetensors", rng.randbytes(MIB + 12_345), lfs=True)
        fake.add("small.safetensors", rng.randbytes(9_999), lfs=True)
        yield fake


@pytest.fixture
def fetch(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetch]:
    # A token in the environment of the user must have no effect.
    monkeypatch.setenv("HF_TOKEN", "hf_from_the_environment")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(sys, "path", [*sys.path])
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    yield Fetch(hub, tmp_path)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def leech(fetch: Fetch, tmp_path: Path) -> Fetch:
    """Another host, which is still empty."""
    (tmp_path / "leech").mkdir()
    return Fetch(fetch.hub, tmp_path / "leech")
