"""The real vLLM, computed by the CPU of a virtual host, through the same roles."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sparkwright.extras.bench.aiperf import find
from sparkwright.extras.bench.store import load
from sparkwright.findings.user_error import UserError
from tests.fleet.proxy_clients import open_ports
from tests.fleet.site import MACHINES, ROOT, Site, bare, push_engine, ssh, until, without_engine

HOST = "spark-1"
WORDS = ("inventory/real.py", "--limit", HOST)
SERVICES = """
sparks[0][1]["services"] = {
    "tiny": {"recipe": "lab-tiny-qwen3-dflash", "port": 8010, "first_answer_seconds": 300},
}
"""
COMPILED = SERVICES.replace("lab-tiny-qwen3-dflash", "lab-tiny-qwen3-compiled")
#: Service without speculation, which this test does not cover.
ADAPTED = SERVICES.replace(
    '"port"',
    """"arguments": {"speculative_config": None},
             "adapters": [{"name": "tiny-last-word", "model": "lab/tiny-qwen3-lora"}], "port\"""",
)
#: Objects of torch.compile, with their times.
OBJECTS = (
    "sudo find -L /opt/sparkwright/services/tiny/caches/current -name '*.so' -printf '%P %T@\\n'"
)
#: Deep checks of the protocol, and checks of the meaning of answers, which fail with a model of one
#: word.
PROTOCOL = {
    *("health", "aliases", "key", "completion", "stream", "context-limit"),
    *("prefix-cache", "speculation"),
}
SENSE = {"chat", "thinking-off", "thinking-on", "tools", "json-schema", "concurrency"}

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def engine(site: Site) -> Iterator[Site]:
    """One host that serves with the real engine, and no other service."""
    site.power_on()
    site.repair()
    bare(HOST)
    push_engine()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / "inventory/real.py").write_text(inventory + SERVICES)
    yield site
    without_engine(HOST)


def test_the_engine_is_deployed_and_a_second_run_changes_nothing(engine: Site) -> None:
    run = engine.deploy("--limit", HOST, inventory="inventory/real.py")
    (service,) = run.host(HOST)["services"]
    assert service["smoke"]["failures"] == []
    assert {check["name"] for check in service["smoke"]["checks"]} >= {"generation", "speculation"}
    again = engine.deploy("--limit", HOST, inventory="inventory/real.py")
    assert again.changed == set()


def test_a_scan_finds_ssh_the_proxy_and_peers(engine: Site) -> None:
    """The real vLLM makes torch listen at every address, even for one process."""
    ssh(HOST, "sudo systemctl stop 'sparkwright-share*' || true")
    installed = open_ports(MACHINES[HOST].address)
    assert {22, 8010} <= installed <= {22, 8010, 18650}


def test_the_deep_smoke_test_uses_the_engines_protocol(engine: Site) -> None:
    """The engine's answers are one word: a request that checks the protocol passes, and a request
    that checks the meaning fails.
    """
    done = engine.call("smoke", *WORDS, "--json", timeout=900)
    (verdict,) = engine.folder.glob(f".sparkwright/smoke/{HOST}-tiny.json")
    checks = {item["name"]: item for item in json.loads(verdict.read_text())["checks"]}
    named = {
        verdict: {name for name, item in checks.items() if item["verdict"] == verdict}
        for verdict in ("passed", "failed", "skipped")
    }
    assert named == {
        "passed": PROTOCOL, "failed": SENSE, "skipped": {"image", "long-2k", "long-16k"},
    }, done.stdout  # fmt: skip


def test_status_doctor_and_watch_report_the_real_engine(engine: Site) -> None:
    assert "lab-tiny" in engine.sparkwright("plan", *WORDS)
    assert "as planned" in engine.sparkwright("status", *WORDS)
    data = json.loads(engine.call("doctor", *WORDS, "--json").stdout)
    assert [item for item in data if item["severity"] == "error"] == []
    ssh(HOST, "sudo systemctl start sparkwright-watch.service")
    state = json.loads(ssh(HOST, "sudo cat /opt/sparkwright/state/watch.json"))
    sample = state["ring"][-1]["services"]["tiny"]
    assert sample["health"] == 200
    assert sample["metrics"]["drafted"] > sample["metrics"]["accepted"] > 0


def test_bench_agrees_with_the_engines_own_counters(engine: Site) -> None:
    try:
        program = find({"SPARKWRIGHT_BENCH_TOOLS": os.environ.get("SPARKWRIGHT_BENCH_TOOLS")
                     or str(ROOT / ".venv-bench")})  # fmt: skip
    except UserError as error:
        pytest.skip(str(error))
    venv = str(program.parents[1])
    arguments = ["--category=coding", "--concurrency=1", "--concurrency=4", "--context=0"]
    done = subprocess.run(
        [sys.executable, "-m", "sparkwright", "bench", *WORDS, *arguments],
        cwd=engine.folder, env={**os.environ, "SPARKWRIGHT_BENCH_TOOLS": venv},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    stored, problems = load(engine.folder / ".sparkwright/bench")
    assert not problems
    assert (HOST, "tiny") in stored, done.stdout + done.stderr
    result = stored[HOST, "tiny"]
    assert [cell.concurrency for cell in result.cells] == [1, 4], done.stdout + done.stderr
    for cell in result.cells:
        assert cell.errors == 0
        # The engine repeats one word in every answer, so many drafts are accepted.
        assert 0.3 < cell.measures["acceptance"] <= 1
    assert str(result.engine) == "vLLM 0.32.0"


def test_a_second_start_compiles_nothing(engine: Site) -> None:
    """torch.compile for the CPU: the second start loads the first start's code."""
    inventory = (engine.folder / "inventory/virtual.py").read_text()
    (engine.folder / "inventory/real.py").write_text(inventory + COMPILED)
    engine.deploy("--limit", HOST, inventory="inventory/real.py")
    made = ssh(HOST, OBJECTS)
    assert len(made.splitlines()) > 5
    ssh(HOST, "sudo systemctl restart sparkwright-tiny")
    health = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8010/health || true"
    until(lambda: ssh(HOST, health) == "200", "it is healthy", 300)
    assert sorted(ssh(HOST, OBJECTS).splitlines()) == sorted(made.splitlines())


def test_an_adapter_answers_under_its_own_name(engine: Site) -> None:
    """The adapter's matrices change the answer: the base model begins a sentence, and the adapter
    repeats a word.
    """
    inventory = (engine.folder / "inventory/virtual.py").read_text()
    (engine.folder / "inventory/real.py").write_text(inventory + ADAPTED)
    run = engine.deploy("--limit", HOST, inventory="inventory/real.py")
    (service,) = run.host(HOST)["services"]
    assert service["smoke"]["failures"] == []
    assert "adapters" in {check["name"] for check in service["smoke"]["checks"]}
    assert _answer("lab-tiny").startswith("This tiny model")
    assert _answer("tiny-last-word").startswith(" word word")
    assert "tiny-last-word" in engine.sparkwright("endpoints", *WORDS)


def _answer(name: str) -> str:
    """The engine's own answer to a prompt for a served name."""
    body = json.dumps({"model": name, "prompt": "Hello", "max_tokens": 8, "temperature": 0})
    home = "/opt/sparkwright/services/tiny"
    socket = "/run/sparkwright-engines/tiny/http.sock"
    request = (
        f"curl -s --unix-socket {socket} -H \"Authorization: Bearer $VLLM_API_KEY\" -d '{body}'"
    )
    ask = f'. {home}/secrets.env; {request} -H "Content-Type: application/json"'
    script = f"{ask} http://engine/v1/completions"
    answer = ssh(HOST, f"sudo sh -c {shlex.quote(script)}")
    return str(json.loads(answer)["choices"][0]["text"])
