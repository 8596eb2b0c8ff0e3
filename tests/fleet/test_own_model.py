"""A model named only by its repository: deployed on an empty host, used, and removed."""

import json
from collections.abc import Iterator

import pytest

from lab.hub.qwen3_fp8 import CONTEXT, REPOSITORY
from tests.fleet.site import Site, ssh

HOST, PORT = "spark-2", 8010
WORDS = ("inventory/own.py", "--limit", HOST)
SERVICES = f"""
sparks[1][1]["services"] = {{"chat": {{"model": "{REPOSITORY}", "port": {PORT}}}}}
"""


@pytest.fixture
def own(site: Site) -> Iterator[Site]:
    """Host that serves a user's own model and its earlier service."""
    site.power_on()
    site.repair()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / "inventory/own.py").write_text(inventory + SERVICES)
    yield site
    ssh(HOST, "sudo systemctl disable --now sparkwright-chat 2>/dev/null || true")


def test_a_model_given_only_by_name_is_deployed_answers_and_is_removed(own: Site) -> None:
    (planned,) = json.loads(own.sparkwright("plan", *WORDS, "--json"))
    (service,) = planned["services"]
    texts = {item["name"]: item for item in [*service["derived"], *service["arguments"]]}
    assert texts["quantization"]["value"] == "fp8"
    assert texts["max_model_len"]["value"] == CONTEXT
    assert f"config.json of {REPOSITORY}@" in texts["max_model_len"]["from"]
    assert texts["tool_call_parser"]["value"] == "hermes"

    run = own.deploy("--limit", HOST, inventory="inventory/own.py")
    (served,) = run.host(HOST)["services"]
    assert served["smoke"]["failures"] == []
    body = json.dumps({"model": REPOSITORY, "messages": [{"role": "user", "content": "17 + 25?"}]})
    answer = ssh(
        HOST,
        f"curl -sS -m 20 -H 'Authorization: Bearer {own.key}' -H 'Content-Type: application/json' "
        f"-d '{body}' http://127.0.0.1:{PORT}/v1/chat/completions",
    )
    assert json.loads(answer)["choices"][0]["message"]["content"]
    assert own.deploy("--limit", HOST, inventory="inventory/own.py").changed == set()

    own.sparkwright("smoke", *WORDS)
    (verdict,) = own.folder.glob(f".sparkwright/smoke/{HOST}-chat.json")
    checks = {load["name"]: load["verdict"] for load in json.loads(verdict.read_text())["checks"]}
    assert checks["tools"] == checks["thinking-on"] == checks["thinking-off"] == "passed"
    assert checks["image"] == "skipped"  # config.json has no vision

    own.sparkwright("remove", *WORDS, "--service", "chat", "--yes")
    assert "sparkwright-chat" not in ssh(HOST, "docker ps -a --format '{{.Names}}'")
    ssh(HOST, "test ! -e /etc/systemd/system/sparkwright-chat.service")
