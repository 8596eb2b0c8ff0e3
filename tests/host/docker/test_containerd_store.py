"""Images under containerd's store, with a real Docker: pulled, named, inspected, removed.

Docker 29 has that store by default on fresh installations; this one (the lab's) has it turned on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from lab.serving import build
from lab.serving.layers import file_layer
from lab.serving.tags import TAGS
from sparkwright.host import disk_usage
from sparkwright.host.disk_usage import Item
from sparkwright.host.fetch.request import (
    FetchFile,
    FetchRequest,
    PeerRoots,
    PeerServerRequest,
    PullRequest,
    document,
)
from sparkwright.host.lib import docker
from tests.host.docker.conftest import Engine
from tests.host.fetch.conftest import HOST
from tests.host.peer_sharing import RUN, SERVER_KEY

PORT = 18777


@dataclass
class Pulled:
    """An image with provenance in its index, and the request that brings it into Docker."""

    name: str
    platform: str
    request: PullRequest

    def run(self, engine: Engine) -> tuple[int, str]:
        state = Path(self.request.fetch.state_dir)
        (state / "request.json").write_text(document(self.request))
        words = [*engine.enter, sys.executable, "-I", "-S", str(HOST / "fetch.py")]
        done = subprocess.run(
            [*words, "--task", "pull", str(state / "request.json")],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stderr


@pytest.fixture
def pulled(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulled]:
    """Its files lie on the disk, all but the attestations; a peer server gives them to Docker."""
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    monkeypatch.setenv("NO_PROXY", "*")
    tag = next(one for one in TAGS if not one.docker_types and len(one.architectures) > 1)
    layer = file_layer(build.identity_files(tag), tmp_path / "layer")
    image = build.image_of(tag, [layer])
    here = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    number = list(tag.architectures).index(here)
    index, manifest = image.index, image.manifests[number]
    content = {one.digest[7:]: one.content for one in (index, manifest, image.configs[number])}
    content[layer.digest[7:]] = Path(layer.path).read_bytes()
    store = tmp_path / "images" / index.digest[7:]
    for name in ("images", "models", "keys", "state"):
        (tmp_path / name).mkdir()
    store.mkdir()
    for name, data in content.items():
        (store / name).write_bytes(data)
    (tmp_path / "keys" / RUN).write_text(f"{SERVER_KEY}\n")
    roots = PeerRoots(str(tmp_path / "models"), str(tmp_path / "images"))
    served = PeerServerRequest(PORT, str(tmp_path / "keys"), roots, 60, ("127.0.0.1",))
    (tmp_path / "served.json").write_text(json.dumps(asdict(served)))
    server = subprocess.Popen(
        [*engine.enter, sys.executable, "-I", "-S", str(HOST / "fetch.py"), "--task",
         "peer-server", str(tmp_path / "served.json")]
    )  # fmt: skip
    fetch = FetchRequest(
        source="registry", endpoint="http://127.0.0.1:9", repo="me/vllm",
        revision=index.digest[7:], destination=str(store), state_dir=str(tmp_path / "state"),
        files=tuple(FetchFile(name, len(data), name) for name, data in content.items()),
        downloader="http", headroom=0, retries=0,
    )  # fmt: skip
    name = f"example.org/me/vllm:sha256-{index.digest[7:]}"
    source = f"127.0.0.1:{PORT}/me/vllm@{manifest.digest}"
    key = str(tmp_path / "keys" / RUN)
    request = PullRequest(name, source, key, (layer.digest[7:],), fetch, keep=True)
    try:
        time.sleep(0.5)
        yield Pulled(name, manifest.digest, request)
    finally:
        server.kill()
        server.wait()


def test_an_image_is_pulled_named_inspected_and_removed(engine: Engine, pulled: Pulled) -> None:
    info = docker.get("/info")
    assert docker.in_containerd(info)
    assert docker.store(info) == "/var/lib/containerd"
    code, said = pulled.run(engine)
    assert code == 0, said
    seen = docker.image(pulled.name)
    assert seen["Id"] == pulled.platform
    # The name that it was pulled by is gone, and no image without a name is left.
    assert docker.image_names() == disk_usage.our_images() == [pulled.name]
    assert [one["RepoTags"] for one in docker.get("/images/json")] == [[pulled.name]]
    made = docker.docker("create", "--pull=never", pulled.name, "x")
    assert made.ok, made.err
    in_use = Item("image", pulled.name, pulled.name, 0, 0)
    assert "conflict" in (disk_usage.remove(in_use) or "")
    assert docker.docker("rm", made.out.strip()).ok
    assert disk_usage.remove(in_use) is None
    assert docker.image(pulled.name) is None
    assert docker.get("/images/json") == []


def test_a_second_pull_of_the_same_image(engine: Engine, pulled: Pulled) -> None:
    for _ in range(2):
        code, said = pulled.run(engine)
        assert code == 0, said
    assert docker.image_names() == [pulled.name]
    assert docker.docker("image", "rm", pulled.name).ok
