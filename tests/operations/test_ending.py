"""The end of a run: its table and its record, or the answers."""

import json
from pathlib import Path

import pytest

from sparkwright.checks.smoke.result import Smoke
from sparkwright.config.inventory import read_inventory
from sparkwright.results.run_summary import Outcome
from sparkwright.run import ending
from sparkwright.run.state import Run
from sparkwright.site.fleet import plan_fleet
from tests.operations.emergencies import sparkwright, unreachable, write_site
from tests.operations.sites import looked_at, site, spark
from tests.unit.builders import ROOT, locked


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARKWRIGHT_API_KEY", raising=False)


def _run() -> Run:
    """One serving host, one host that was rolled back, one unreachable host."""
    hosts = [spark(f"spark-{n}") for n in (1, 2, 3)]
    run = site(*hosts)
    for host in hosts[:2]:
        item = run.hosts[host.name]
        looked_at(host, item)
        item.smoke["qwen36"] = Smoke(6, 6, 2.8, ())
        host.memory.executions = 2
        host.memory.changes.append("service qwen36: restart")
    run.hosts["spark-2"].outcomes["qwen36"] = Outcome("reverted", "0123456789ab", None)
    run.hosts["spark-2"].memory.failure = "no answer: the former release runs again"
    run.hosts["spark-3"].memory.failure = "not reached: timed out"
    return run


def test_a_run_prints_a_row_for_each_host(capsys: pytest.CaptureFixture[str]) -> None:
    run = _run()
    release = run.hosts["spark-1"].services[0].release
    ending.report(run, as_json=False)
    text, error = capsys.readouterr()
    assert error == ""
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line[:5] == "spark"}
    assert rows["spark-1"][2:4] == ["serving,", "changed"]
    assert rows["spark-1"][4] == "http://10.0.0.1:8000/v1"
    assert release in rows["spark-1"]
    assert "6/6" in rows["spark-1"]
    # The row shows the running release, not the planned release.
    assert rows["spark-2"][2] == "reverted"
    assert "0123456789ab" in rows["spark-2"]
    assert release not in rows["spark-2"]
    assert rows["spark-3"][2:] == ["left", "alone", "-", "-", "-", "-"]
    assert "spark-3: not reached: timed out" in text
    assert "2 changes, " in text
    assert "remote executions: spark-1 2, spark-2 2, spark-3 0" in text
    assert "NOT as planned: spark-2, spark-3" in text
    key = Path(run.hosts["spark-1"].settings.api_key_file).absolute()
    assert f'Authorization: Bearer $(cat {key})"' in text
    record = json.loads(Path(".sparkwright/last-run.json").read_text())
    first = record["hosts"][0]
    assert (first["host"], first["gpu"], first["driver"]) == ("spark-1", "NVIDIA GB10", "580.95.05")
    assert record["hosts"][2]["refused"] == "not reached: timed out"
    assert Path(".sparkwright").stat().st_mode & 0o777 == 0o700


def test_the_key_of_the_environment_is_not_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKWRIGHT_API_KEY", "sk-not-to-be-shown-0")
    ending.report(_run(), as_json=False)
    text = capsys.readouterr().out
    assert 'Bearer $SPARKWRIGHT_API_KEY"' in text
    assert "not-to-be-shown" not in text


def _record() -> dict[str, str]:
    """Host -> whether its service passed the smoke test, by the record."""
    hosts = json.loads(Path(".sparkwright/last-run.json").read_text())["hosts"]
    return {host["host"]: host["services"][0]["smoke"] and "serves" for host in hosts}


def test_a_run_of_some_hosts_keeps_the_last_known_state_of_other_hosts() -> None:
    first, second = _run(), _run()
    ending.report(first, as_json=False)
    second.everyone = frozenset(("spark-1", "spark-3"))  # spark-2 has left the inventory
    del second.hosts["spark-1"], second.hosts["spark-2"]
    ending.report(second, as_json=False)
    assert _record() == {"spark-1": "serves", "spark-3": None}


def test_a_declined_run_leaves_the_record_unchanged() -> None:
    ending.report(_run(), as_json=False)
    before = Path(".sparkwright/last-run.json").read_bytes()
    hosts = [spark(f"spark-{n}") for n in (1, 2)]
    declined = site(*hosts)
    declined.everyone = frozenset(declined.hosts)
    for host in hosts:
        looked_at(host, declined.hosts[host.name])
    ending.report(declined, as_json=False)
    assert Path(".sparkwright/last-run.json").read_bytes() == before


@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["quiet", "verbose"])
@pytest.mark.parametrize("command", ["deploy", "rollback"])
def test_a_command_begins_and_ends_with_its_only_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, verbose: tuple[str, ...]
) -> None:
    """The output lacks pyinfra's stages, connections and results, which -v shows."""
    for folder in ("site", ".ssh"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".ssh/known_hosts").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    write_site(tmp_path / "site", unreachable("spark-1"), deploy=(ROOT / "deploy.py").read_text())
    inventory = read_inventory(tmp_path / "site/inventory/lab.py")
    plans = [host.plan for host in plan_fleet(inventory).or_raise().values()]
    (tmp_path / "site/fleet.lock").write_text(locked(*plans))
    done = sparkwright(tmp_path / "site", command, "--yes", *verbose)
    assert done.returncode == 1
    first, *others = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = "Could not connect ([Errno None] Unable to connect to port 9 on 127.0.0.1)"
    assert ("--> " in done.stderr) == bool(verbose), done.stderr
    if not verbose:
        assert (first, others) == (f"[spark-1] {reason}", [])
    last = done.stdout.rstrip().splitlines()[-1]
    assert last.startswith(f"NOT as planned: spark-1: not reached: {reason}")
