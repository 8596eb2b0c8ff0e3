"""A model that transcribes speech, named only by its repository, with requests to its own route."""

import json
from collections.abc import Iterator

import pytest

from lab.hub.whisper import REPOSITORY
from tests.fleet.site import Site, ssh

HOST, PORT, INVENTORY = "spark-2", 8012, "inventory/kinds.py"
WORDS = (INVENTORY, "--limit", HOST)
SERVICES = f"""
sparks[1][1]["services"] = {{"hear": {{"model": "{REPOSITORY}", "port": {PORT}}}}}
"""


@pytest.fixture
def own(site: Site) -> Iterator[Site]:
    """One host that serves this kind of model, and no other service."""
    site.power_on()
    site.repair()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / INVENTORY).write_text(inventory + SERVICES)
    yield site
    ssh(HOST, "sudo systemctl disable --now sparkwright-hear 2>/dev/null || true")


def test_gate_smoke_and_chat_transcribe_a_spoken_sentence(own: Site) -> None:
    run = own.deploy("--limit", HOST, inventory=INVENTORY)
    (served,) = run.host(HOST)["services"]
    assert served["smoke"]["failures"] == []
    assert own.deploy("--limit", HOST, inventory=INVENTORY).changed == set()

    own.sparkwright("smoke", *WORDS)
    (verdict,) = own.folder.glob(f".sparkwright/smoke/{HOST}-hear.json")
    checks = {check["name"]: check for check in json.loads(verdict.read_text())["checks"]}
    assert "written: Four queen of clubs." in checks["aliases"]["detail"]
    assert checks["chat"]["verdict"] == checks["stream"]["verdict"] == "skipped"

    assert own.sparkwright("chat", *WORDS).startswith("transcription: written: Four queen of")
    key = f"-H 'Authorization: Bearer {own.key}'"
    status = "curl -sS -o /dev/null -w '%{http_code}'"
    at = f"http://127.0.0.1:{PORT}/v1"
    assert ssh(HOST, f"{status} {key} -F model=x {at}/audio/transcriptions").strip() == "400"
    assert ssh(HOST, f"{status} -F model=x {at}/audio/transcriptions").strip() == "401"
    own.sparkwright("remove", *WORDS, "--service", "hear", "--yes")
