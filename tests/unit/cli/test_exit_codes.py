"""Exit codes: the same for the same mistake (the table in docs/commands.md)."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.removal import RemovalAnswer
from tests.tables import Tables
from tests.unit.checks.service import builders as ill
from tests.unit.cli.answering import answering, silent
from tests.unit.cli.fleet_of_five import run
from tests.unit.results.test_status import answer

TABLES = Tables(__file__)

RECIPE = '"recipe": "gemma4-26b-a4b-dflash-agentic"'
SPARK = f'sparks = [("spark-1", {{"services": {{"a": {{{RECIPE}}}}}}})]\n'
#: Commands that plan the fleet here, without a host.
planning = pytest.mark.parametrize("command", TABLES.data["PLANNING"])
USAGE = DiskUsage((), ())
#: A command that queries hosts -> the answer of a healthy host.
ASKING = {
    "status": answer(),
    "history": answer(),
    "diff": answer(),
    "doctor": ill.spark(),
    "models list": USAGE,
    "models prune --yes": USAGE,
    "remove --yes": RemovalAnswer(("the service",), ()),
}


@pytest.fixture
def site(here: Path) -> Path:
    """A site with one host and a valid plan."""
    (here / "inventory").mkdir()
    (here / "group_data").mkdir()
    (here / "inventory/lab.py").write_text(SPARK)
    return here


@planning
def test_a_wrong_setting_limit_or_inventory_exits_with_2(command: str, site: Path) -> None:
    if "key" not in command:
        assert run(command, "--limit", "nobody").exit_code == 2
    (site / "group_data/all.py").write_text("keep_releases = -1\n")
    assert run(command).exit_code == 2
    (site / "group_data/all.py").unlink()
    (site / "inventory/lab.py").unlink()
    assert run(command).exit_code == 2
    assert not (site / "out").exists()


@TABLES("inventory", "stem", "message")
def test_check_refuses_a_misspelt_group(
    inventory: str, stem: str, message: str, site: Path
) -> None:
    services = f'services = {{"a": {{{RECIPE}}}}}\n'
    for name in ("sparks", stem):
        (site / f"group_data/{name}.py").write_text(services)
    (site / "inventory/lab.py").write_text(inventory)
    done = run("check")
    assert done.exit_code == 2
    assert message in done.output


def test_the_file_of_a_family_without_hosts_is_accepted(site: Path) -> None:
    for name in ("here", "hopper"):
        (site / f"group_data/{name}.py").write_text(f'services = {{"a": {{{RECIPE}}}}}\n')
    (site / "inventory/lab.py").write_text("here = ['spark-1']\n")
    assert "the inventory has no group" not in run("check").output


@pytest.mark.parametrize("command", ["check", "plan", "check --json", "plan --json"])
def test_a_mistake_in_the_plan_exits_with_2(command: str, site: Path) -> None:
    problems = f'{RECIPE}, "arguments": {{"max_num_seqs": 4000}}'
    (site / "inventory/lab.py").write_text(SPARK.replace(RECIPE, problems))
    done = run(command)
    assert done.exit_code == 2
    if "json" in command:
        data = json.loads(done.output)
        findings = data[0]["findings"] if command.startswith("plan") else data
        assert "error" in {finding["severity"] for finding in findings}


@pytest.mark.parametrize("missing", [[], ["rtx-1"]], ids=["all answer", "one is silent"])
@pytest.mark.parametrize(("command", "well"), ASKING.items(), ids=ASKING)
def test_a_silent_host_is_an_error(
    monkeypatch: pytest.MonkeyPatch, here: Path, command: str, well: Any, missing: list[str]
) -> None:
    """The state of a host that does not answer is unknown."""
    answering(monkeypatch, lambda _: silent({"spark-1": well}, *missing))
    done = run(command, "inventory/lab.py")
    assert done.exit_code == int(bool(missing)), done.output
    if command == "diff":
        assert "no differences on spark-1\n" in done.output
    if command.startswith("remove") and missing:
        assert "rtx-1: nothing was removed; run the command again" in done.output
