"""The engine with the rendered arguments, variables, mounts and key of a host."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.hub import repositories
from lab.hub.serving import running as hub_running
from lab.hub.store import Store
from lab.real_engine import build, image, local
from lab.real_engine.places import RECIPE
from lab.real_engine.vllm import VLLM
from sparkwright.catalog import load_catalog
from sparkwright.checks.smoke.deep import deep_request
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import Selection
from sparkwright.engines import engine as engine_named
from sparkwright.engines.engine import Engine
from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.service import Service, SmokeRequest
from sparkwright.host.smoke.client import DeepRequest
from sparkwright.plan.service import render_service
from sparkwright.site.resolution import pinned
from tests.engine import registry
from tests.held import held_for_tests
from tests.host.serving import free_port

ROOT = Path(__file__).resolve().parents[2]
KEY = "a-key-of-the-test"
BOOT_SECONDS = 300.0


@pytest.fixture(scope="session")
def engine() -> Iterator[build.Engine]:
    if os.geteuid() != 0:
        pytest.fail("the engine's root file system is root's: run `make test-real-engine`")
    with held_for_tests():  # another checkout may rebuild the lab's tree
        yield build.ensure(VLLM)


@dataclass(frozen=True)
class Rendered:
    """The files that a run would write on a host for a recipe."""

    release: Service
    strict: bool
    compose: dict[str, Any]
    mounts: list[tuple[Path, str]]
    own: Engine
    deep: DeepRequest


@pytest.fixture(scope="session", params=["default", "strict"])
def rendered(
    engine: build.Engine, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Rendered:
    """vLLM's recipe, with and without a read-only root."""
    return render(tmp_path_factory.mktemp("site"), engine, recipe=RECIPE, hardening=request.param)


def render(path: Path, engine: build.Engine, /, **settings: object) -> Rendered:
    """Push the image to a registry, and return the output of `sparkwright render`."""
    repositories.make(path / "hub", scale=0.01)
    with registry.serving() as images, hub_running(path / "hub") as hub:
        digest, sent = image.push_to(images, engine.kind, engine.layers)
        assert sent > sum(layer.size for layer in engine.layers)
        assert image.push_to(images, engine.kind, engine.layers) == (digest, 0)
        host = {
            "image_mirrors": {"lab.invalid": images},
            "hub_endpoint": hub,
            "catalog_directories": [str(ROOT / "lab/catalog")],
            "services": {"tiny": {"port": free_port(), **settings}},
        }
        inventory = path / "inventory.py"
        inventory.write_text(f"sparks = [('spark-1', {host!r})]\n")
        arguments = ["-m", "sparkwright", "render", str(inventory), str(path / "out")]
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True)
        hosts = load(Selection(inventory)).or_raise()
        plan = hosts["spark-1"].plan
        release = render_service(plan, plan.services[0], pinned(hosts))
    written = path / "out/spark-1" / release.directory.lstrip("/") / "compose.yaml"
    assert written.read_text() == release.compose
    mounts = []
    for model in plan.services[0].models:
        folder = path / "models" / model.name
        _files(Store(path / "hub"), model.repository, release.models[model.repository], folder)
        mounts.append((folder, model.mount))
    container = yaml.safe_load(release.compose)["services"]["engine"]
    (service,) = plan.services
    deep = deep_request(
        service, release.gate, load_catalog([ROOT / "catalog", ROOT / "lab/catalog"])
    )
    own = engine_named(service.engine)
    return Rendered(release, service.container.strict, container, mounts, own, deep)


def _files(store: Store, repository: str, commit: str, folder: Path) -> None:
    """The files of a commit, as the role for weights puts them on a host."""
    data = store.load(repository)
    assert data is not None
    result = data.commit(commit)
    assert result is not None
    folder.mkdir(parents=True)
    for file in result.files:
        (folder / file.path).parent.mkdir(exist_ok=True)
        (folder / file.path).write_bytes(store.blob(file.sha256).read_bytes())


@dataclass(frozen=True)
class Running:
    """A running engine."""

    process: subprocess.Popen[bytes]
    log: Path
    request: SmokeRequest
    deep: DeepRequest
    boot_seconds: float

    def ask(self, method: str, path: str, body: Any = None, *, key: bool = True) -> tuple[int, str]:
        """Status and text of one request."""
        connection = Server(self.request.address, self.request.port).connected(60)
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {KEY}"
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, body=text, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="session")
def running(
    engine: build.Engine, rendered: Rendered, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Start vLLM with the rendered arguments and variables; wait until it is healthy."""
    with started(tmp_path_factory.mktemp("engine"), engine, rendered) as running:
        yield running


@contextlib.contextmanager
def started(path: Path, engine: build.Engine, rendered: Rendered) -> Iterator[Running]:
    """Start an engine with the rendered arguments and variables; wait until it is healthy."""
    secrets, log = path / "secrets.env", path / "log"
    secrets.write_text(f"{rendered.own.key_variable}={KEY}\n")
    sockets = path / "sockets"
    sockets.mkdir()
    at = str(sockets / Path(rendered.release.gate.address).name)
    request = replace(rendered.release.gate, secrets=str(secrets), address=at, proxy=None)
    deep = replace(rendered.deep, secrets=str(secrets), address=at, proxy=None)
    service = rendered.compose
    (target,) = [item["target"] for item in service["volumes"] if "secrets" in item["target"]]
    places = [item["target"] for item in service["volumes"] if item["type"] == "volume"]
    arguments = [word.replace("$$", "$") for word in (*service["entrypoint"], *service["command"])]
    variables = service.get("environment", {})
    start = time.monotonic()
    with local.running(
        engine.root, arguments, variables, [*rendered.mounts, (secrets, target)], log,
        places, sockets if service.get("network_mode") == "none" else None,
    ) as process:  # fmt: skip
        result = Running(process, log, request, deep, 0)
        while not _healthy(result):
            text = log.read_text(errors="replace")[-4000:]
            assert process.poll() is None, text
            assert time.monotonic() < start + BOOT_SECONDS, text
            time.sleep(0.5)
        yield Running(process, log, request, deep, time.monotonic() - start)


def _healthy(engine: Running) -> bool:
    try:
        return engine.ask("GET", "/health", key=False)[0] == 200
    except (OSError, NoAnswer):
        return False
