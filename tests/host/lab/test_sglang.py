"""SGLang as it is planned: its command line, the program that starts it, and the fake."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.serving.build import PACKAGES, fake_files
from sparkwright.engines import client_routes, engine, log_patterns, metric_names
from sparkwright.host.lib.http import Server
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.service import container_command
from tests.host.lab.fake_server import KEY, make_model
from tests.unit.builders import plan

ENGINE = engine("sglang")
PHASES = log_patterns("boot")


@pytest.fixture(scope="module")
def service() -> ServicePlan:
    return plan({"s": {"recipe": "qwen38-27b-nvfp4-sglang-spark"}}).services[0]


@pytest.fixture(scope="module")
def socket(service: ServicePlan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of the engine, in the image's tree of files."""
    tree = tmp_path_factory.mktemp("image")
    for name, (content, _) in fake_files().items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    path, model = str(tree / "http.sock"), make_model(tree / "model")
    replaced = {"/run/engine/http.sock": path, service.body.mount: str(model)}
    words = [replaced.get(word, word) for word in container_command(service).arguments]
    environment = {
        "PYTHONPATH": f"{tree / PACKAGES}:{tree / 'opt/fake-vllm'}",
        "FAKE_VLLM_NO_GPU_CHECK": "1", "FAKE_VLLM_BOOT_SECONDS": "0.05",
        "FAKE_VLLM_VERSION": service.version or "", ENGINE.key_variable: KEY,
    }  # fmt: skip
    with (tree / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **environment}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while not Path(path).exists() and time.monotonic() < deadline:
            assert process.poll() is None, (tree / "log").read_text()
            time.sleep(0.05)
        yield path
    finally:
        process.terminate()
        process.wait(10)


def test_the_smoke_test_passes(service: ServicePlan, socket: str, tmp_path: Path) -> None:
    (tmp_path / "secrets.env").write_text(f"{ENGINE.key_variable}={KEY}\n")
    request = SmokeRequest(
        name="s", unit="sparkwright-none.service", address=socket, port=0,
        secrets=str(tmp_path / "secrets.env"), served_names=service.served_names, boot_seconds=5,
        first_answer_seconds=5, warm_ups=1, speculates=True, metric_names=metric_names(),
    )  # fmt: skip
    answer = check.run(request)
    assert [(item.name, item.ok) for item in answer.checks] == [
        (name, True)
        for name in ("health", "models", "key", "generation", "warm-up 1", "speculation")
    ]
    assert "drafts were verified" in answer.checks[-1].detail


def test_every_metric_that_the_engine_names_is_there(socket: str) -> None:
    text = Server(socket, 0, None).ask("GET", "/metrics", key=False).text
    listed = {line.split("{")[0].split(" ")[0] for line in text.splitlines()}
    assert set(ENGINE.metrics.values()) <= listed


def test_the_proxy_shuts_routes_that_change_the_server(socket: str) -> None:
    server = Server(socket, 0, KEY)
    open_paths = {path for _, path in client_routes("sglang")}
    for path in ("/flush_cache", "/update_weights_from_disk", "/abort_request", "/server_info"):
        assert server.ask("GET" if "info" in path else "POST", path, {}).status == 200
        assert path not in open_paths


def test_the_log_tells_its_phases_and_no_key(socket: str) -> None:
    text = (Path(socket).parent / "log").read_text()
    assert KEY not in text
    phases = dict.fromkeys(
        phase for line in text.splitlines() for own, phase in PHASES.items() if re.search(own, line)
    )
    assert list(phases) == ["weights into memory", "compiling", "capturing graphs", "first answers"]
