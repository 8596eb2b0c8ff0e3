"""Shell completion: only from the site's files, and silent about their faults."""

import os
import socket
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from sparkwright.cli import main, sections
from tests import forked
from tests.tables import Tables
from tests.unit.builders import ROOT

cases = Tables(__file__)

#: Options and arguments that take a name which completion can offer.
NAMED = {"limit", "host", "names", "services", "model", "recipe", "tag", "key", "name"}
#: Parameters with a name of ``NAMED`` whose values are not in the site.
NOT = {
    *(("import", "name"), ("init", "names"), ("new", "model"), ("new", "name"), ("up", "model")),
    # A served name, which only a plan determines.
    *(("chat", "model"), ("usage", "model")),
}
INVENTORY = """print("hello")
sparks = [
    ("spark-1", {"services": {"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash"}}}),
    ("spark-2", {"services": {"own": {"model": "who/knows", "port": 8001}},
                 "keys": {"laptop": {}}}),
]
"""


@pytest.fixture
def site(here: Path) -> Path:
    (here / "inventory").mkdir()
    (here / "inventory/lab.py").write_text(INVENTORY)
    return here


def completed(*arguments: str) -> list[str]:
    """Complete a command line whose last word is incomplete, as bash does."""
    shell_complete = ShellComplete(main, {}, "sparkwright", "_X")
    return [
        completion.value
        for completion in shell_complete.get_completions(list(arguments[:-1]), arguments[-1])
    ]


@cases("arguments", "names")
def test_names_are_completed(
    site: Path, arguments: tuple[str, ...], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        networks.append(None)
        raise OSError

    networks: list[None] = []
    before = sorted(site.rglob("*"))
    monkeypatch.setattr(socket.socket, "connect", asked)
    assert completed(*arguments) == names
    assert networks == []
    assert sorted(path for path in site.rglob("*") if "__pycache__" not in str(path)) == before


def test_every_option_that_takes_a_name_completes_the_name() -> None:
    context = click.Context(main)

    def look(command: click.Command, name: str) -> None:
        for item, inner in getattr(command, "commands", {}).items():
            look(inner, item)
        for parameter in command.params:
            if parameter.name in NAMED and (name, parameter.name) not in NOT:
                assert parameter._custom_shell_complete is not None, (name, parameter.name)

    for name in [name for section in sections().values() for name in section]:
        command = main.get_command(context, name)
        assert command is not None
        look(command, name)


@cases("broken")
@pytest.mark.parametrize("option", ["--limit", "--service"])
def test_completion_in_a_faulty_site_is_silently_empty(
    site: Path, broken: str | None, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (site / "inventory/lab.py").unlink()
    if broken:
        (site / "inventory/lab.py").write_text(broken)
    assert all(item in ("a", "all", "lab", "sparks") for item in completed("chat", option, ""))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["status --limit ", "stauts --limit ", "key list --", "'"])
def test_completion_outside_a_site_prints_no_traceback(tmp_path: Path, command: str) -> None:
    env = {
        **os.environ, "PYTHONPATH": str(ROOT), "COMP_WORDS": f"sparkwright {command}",
        "COMP_CWORD": "3", "_SPARKWRIGHT_COMPLETE": "bash_complete",
    }  # fmt: skip
    done = forked.run(["sparkwright"], tmp_path, env)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
