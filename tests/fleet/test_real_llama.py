"""The real llama-server with a GGUF file, computed by the CPU of a virtual host."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.hub.tiny_qwen3 import WORDS
from lab.real_engine.llama_server import DRAFTING, RECIPE
from sparkwright.engines import engine
from tests.fleet.proxy_clients import status
from tests.fleet.site import (
    MACHINES,
    ROOT,
    Site,
    bare,
    container,
    push_engine,
    release,
    ssh,
    until,
    without_engine,
)

HOST, PORT = "spark-2", 8011
INVENTORY = "inventory/llama.py"
LIMIT = ("--limit", HOST)
BROKEN = "lab-tiny-qwen3-broken-gguf"
SERVICES = f"""
sparks[1][1]["services"] = {{"tiny": {{"recipe": "{RECIPE}", "port": {PORT}}}}}
"""
ROUTES = ROOT / "tests/fixtures/llamacpp/0.7.0/routes.json"
QUESTION = {
    "model": "lab-tiny-fast", "max_tokens": 24, "temperature": 0,
    "messages": [{"role": "user", "content": "Hello"}],
}  # fmt: skip

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def llama(site: Site) -> Iterator[Site]:
    """One host that serves with llama-server, and no other service."""
    site.power_on()
    site.repair()
    bare(HOST)
    push_engine("--engine", "llama-server")
    serve(site, RECIPE)
    yield site
    without_engine(HOST)


def serve(site: Site, recipe: str) -> None:
    """Write the inventory."""
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / INVENTORY).write_text(inventory + SERVICES.replace(RECIPE, recipe))


def answer(site: Site) -> str:
    """Text that a client on the host reads from the proxy."""
    text = ssh(
        HOST,
        f"curl -sS -m 20 -H 'Authorization: Bearer {site.key}' -H 'Content-Type: application/json'"
        f" -d '{json.dumps(QUESTION)}' http://127.0.0.1:{PORT}/v1/chat/completions",
    )
    return str(json.loads(text)["choices"][0]["message"]["content"])


def sample() -> dict[str, Any]:
    """Metrics of the watch's newest sample."""
    # systemd allows five starts in ten seconds.
    unit = "sparkwright-watch.service"
    ssh(HOST, f"sudo systemctl reset-failed {unit}; sudo systemctl start {unit}")
    state = json.loads(ssh(HOST, "sudo cat /opt/sparkwright/state/watch.json"))
    service: dict[str, Any] = state["ring"][-1]["services"]["tiny"]
    assert service["health"] == 200
    return dict(service["metrics"])


def test_the_engine_is_deployed_and_a_second_run_changes_nothing(llama: Site) -> None:
    run = llama.deploy(*LIMIT, inventory=INVENTORY)
    (service,) = run.host(HOST)["services"]
    assert service["smoke"]["failures"] == []
    assert "generation" in {check["name"] for check in service["smoke"]["checks"]}
    assert answer(llama) == "".join(WORDS) + WORDS[-1] * (24 - len(WORDS))
    files = ssh(HOST, "sudo find /opt/models -name '*.gguf' -printf '%f\\n'")
    assert files.splitlines() == ["tiny-qwen3-Q8_0.gguf"]
    assert llama.deploy(*LIMIT, inventory=INVENTORY).changed == set()


def test_the_proxy_requires_the_key_and_closes_other_routes(llama: Site) -> None:
    address, clients = MACHINES[HOST].address, engine("llamacpp").routes.clients
    for route in json.loads(ROUTES.read_text()):
        method, path = route.split()
        if path.endswith("/health"):
            continue
        body = "{}" if method == "POST" else None
        for key in (None, "sk-wrong"):
            assert status(address, PORT, method, path, key, body) in (401, 404), route
        if (method, path) not in clients and not path.startswith("/models"):
            assert status(address, PORT, method, path, llama.key, body) == 404, route
    assert status(address, PORT, "GET", "/v1/models", llama.key) == 200


def test_watch_and_top_show_metrics(llama: Site) -> None:
    before = sample()
    answer(llama)
    after = sample()
    assert after["progress"] - before["progress"] >= 24
    done = llama.call("top", INVENTORY, *LIMIT, "--once", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["service"], row["problem"]) == ("tiny", "")


def test_status_doctor_and_the_deep_smoke_test_report_the_engine(llama: Site) -> None:
    assert "as planned" in llama.sparkwright("status", INVENTORY, *LIMIT)
    data = json.loads(llama.call("doctor", INVENTORY, *LIMIT, "--json").stdout)
    assert [item for item in data if item["severity"] == "error"] == []
    done = llama.call("smoke", INVENTORY, *LIMIT, "--json", timeout=600)
    (verdict,) = llama.folder.glob(f".sparkwright/smoke/{HOST}-tiny.json")
    checks = {item["name"]: item["verdict"] for item in json.loads(verdict.read_text())["checks"]}
    protocol = ("health", "aliases", "key", "completion", "stream", "context-limit")
    assert {checks[name] for name in protocol} == {"passed"}, done.stdout


def test_a_file_that_does_not_load_is_reverted(llama: Site) -> None:
    """Size, hash and header are right: only the engine detects that a tensor is missing."""
    before = container(HOST, "tiny")
    served = release(HOST, "tiny")
    serve(llama, BROKEN)
    try:
        run = llama.run("--yes", *LIMIT, inventory=INVENTORY)
    finally:
        serve(llama, RECIPE)
    assert (run.code, run.refused) == (1, {HOST}), run.output
    assert run.host(HOST)["services"][0]["outcome"] == "reverted", run.output
    assert "blk.1.ffn_down.weight" in run.output
    assert release(HOST, "tiny") == served
    assert container(HOST, "tiny") != before  # the rollback started a new container
    assert answer(llama).startswith(WORDS[0])


def test_split_files_and_a_draft_model_serve(llama: Site) -> None:
    serve(llama, DRAFTING)
    run = llama.deploy(*LIMIT, inventory=INVENTORY)
    (service,) = run.host(HOST)["services"]
    assert "speculation" in {check["name"] for check in service["smoke"]["checks"]}
    files = ssh(HOST, "sudo find /opt/models -name '*.gguf' -printf '%f\\n'").splitlines()
    assert {Path(name).stem[-14:] for name in files} >= {"00001-of-00002", "00002-of-00002"}
    answer(llama)
    until(lambda: sample().get("drafted", 0) > 0, "drafts are counted", 60)
