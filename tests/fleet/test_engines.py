"""SGLang on a virtual Spark: a recipe deploys it, its port is closed to other users, and a second
deploy leaves it unchanged.
"""

import json
from collections.abc import Iterator

import pytest

from tests.fleet.site import Site, ssh

HOST, PORT = "spark-2", 8011
INVENTORY = "inventory/sglang.py"
SERVICES = f"""
sparks[1][1]["services"] = {{
    "talk": {{"recipe": "qwen38-27b-nvfp4-sglang-spark", "port": {PORT}}},
}}
"""


@pytest.fixture
def own(site: Site) -> Iterator[Site]:
    """One host that serves with SGLang, and no other service."""
    site.power_on()
    site.repair()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / INVENTORY).write_text(inventory + SERVICES)
    yield site
    ssh(HOST, "sudo systemctl disable --now sparkwright-talk 2>/dev/null || true")


def _curl(key: str, path: str, body: object = None) -> tuple[int, str]:
    data = f"-d '{json.dumps(body)}'" if body is not None else ""
    flags = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' {data}"
    text = ssh(HOST, f"curl -sS -m 20 -w '\\n%{{http_code}}' {flags} http://127.0.0.1:{PORT}{path}")
    answer, _, status = text.rstrip().rpartition("\n")
    return int(status), answer


def test_sglang_is_deployed_answers_and_stays_unchanged(own: Site) -> None:
    run = own.deploy("--limit", HOST, inventory=INVENTORY)
    (served,) = run.host(HOST)["services"]
    assert served["smoke"]["failures"] == []

    body = {"model": "qwen38-27b", "messages": [{"role": "user", "content": "17 + 25?"}]}
    status, answer = _curl(own.key, "/v1/chat/completions", body)
    assert (status, bool(json.loads(answer)["choices"][0]["message"]["content"])) == (200, True)
    assert _curl("wrong", "/v1/models")[0] == 401
    # SGLang's own routes, with a client's key.
    for path in ("/flush_cache", "/server_info", "/update_weights_from_disk", "/generate"):
        assert _curl(own.key, path)[0] in (403, 404)
    # The engine's key is in no command line, no label, no variable and no log.
    key = ssh(HOST, "sudo cat /opt/sparkwright/services/talk/secrets.env || true").partition("=")[2]
    if key := key.strip():
        shown = ssh(
            HOST,
            "ps -eo args; docker inspect sparkwright-talk; sudo journalctl -u sparkwright-talk",
        )
        assert key not in shown
    metrics = _curl(own.key, "/metrics")[1]
    assert "sglang:generation_tokens_total" in metrics

    assert own.deploy("--limit", HOST, inventory=INVENTORY).changed == set()
