"""Names of hosts and services in every command, and the treatment of unknown names."""

from pathlib import Path

import pytest

from sparkwright.cli.lib.extras import all_commands
from sparkwright.cli.lib.selection import Selection, selection
from sparkwright.config.inventory import site_inventory
from sparkwright.host.control import ControlAnswer
from tests.tables import Tables
from tests.unit.cli.answering import answering, exits, run

cases = Tables(__file__)

INVENTORY = """
sparks = [("spark-1", {"services": {"qwen36": {}, "small": {}}}), ("spark-2", {"services": {}})]
rtx50 = [("rtx-1", {"services": {"qwen36": {}}})]
"""
#: Every command that takes names of hosts, with its other required arguments.
COMMANDS = {
    command: {"bundle": ["out"], "render": ["out"], "maintenance": ["on"],
            "monitoring": ["--output", "out"]}.get(command, [])
    for command in (
        *(name for name, each in all_commands().items()
          if any(parameter.name == "names" and parameter.nargs == -1
                 for parameter in each.load().params)),
        "models list", "models prune", "deploy",
    )
}  # fmt: skip


@pytest.fixture(autouse=True)
def _site(here: Path) -> None:
    for folder in ("inventory", "group_data"):
        (here / folder).mkdir()
    (here / "inventory/home.py").write_text(INVENTORY)
    (here / "deploy.py").touch()


@cases("names", "limit", "of_hosts")
def test_names_select_hosts_groups_and_services(
    names: list[str], limit: list[str], of_hosts: dict[str, list[str]]
) -> None:
    chosen = selection(Selection, names, whole=False)
    assert chosen.limit == tuple(limit)
    assert chosen.of_hosts == {host: tuple(services) for host, services in of_hosts.items()}


@pytest.mark.parametrize("word", ["qwen36", "all/qwen36"])
def test_a_limit_narrows_a_service_that_several_hosts_have(word: str) -> None:
    chosen = selection(Selection, [word], whole=False, limit=("sparks",))
    assert (chosen.limit, chosen.of_hosts) == (("spark-1",), {"spark-1": ("qwen36",)})


@cases("names", "message")
@pytest.mark.parametrize("command", ["stop", "status", "logs", "chat", "bench", "plan", "shell"])
def test_an_unknown_name_is_refused_before_any_connection(
    command: str, names: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, lambda _: {})
    done = run(command, *names)
    assert (done.exit_code, asked) == (2, [])
    assert message in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_misspelt_host(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, lambda _: {})
    done = run(*command.split(), "sprk-1", *COMMANDS[command])
    assert (done.exit_code, asked) == (2, [])
    assert "command line: sprk-1" in done.stderr
    assert "did you mean 'spark-1'?" in done.stderr


def test_the_commands_about_whole_hosts_refuse_a_service() -> None:
    assert len(COMMANDS) > 25
    done = exits(2, "doctor", "small")
    assert "this is a service, but the command accepts only whole hosts" in done.stderr
    assert "name its host: spark-1" in done.stderr


def test_services_are_looked_for_on_the_hosts_while_group_data_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("group_data/all.py").write_text("syntax error(")
    asked = answering(monkeypatch, lambda _: {"rtx-1": ControlAnswer(("old",), {"old": "stopped"})})
    assert run("stop", "rtx-1/old", "--yes").exit_code == 0
    assert (asked[0].hosts.limit, asked[0].hosts.services_of("rtx-1")) == (("rtx-1",), ("old",))


def test_a_prompt_names_the_services_of_each_host() -> None:
    done = run("stop", "rtx-1", "spark-1/small", input="n\n")
    assert "Stop every service on rtx-1, small on spark-1?" in done.stderr


@cases("files", "variable", "setting", "inventory")
def test_the_inventory_of_a_site_is_found(
    files: list[str], variable: str, setting: str, inventory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in files:
        Path("inventory", file).touch()
    monkeypatch.setenv("SPARKWRIGHT_INVENTORY", variable)
    if setting:
        Path("group_data/all.py").write_text(f"inventory = {setting!r}\n")
    assert str(site_inventory()) == inventory


def test_two_inventories_are_refused() -> None:
    done = exits(2, "status", "inventory/home.py", "inventory/lab.py")
    assert "name one inventory" in done.stderr
