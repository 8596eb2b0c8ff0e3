"""``sparkwright bootstrap``: steps, hosts and password of the command line."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.cli import bootstrap as bootstrap_command
from sparkwright.cli.lib.hosts import Hosts, given
from tests.unit.cli.answering import Asked, answering, run

passwords: list[dict[str, Any]] = []


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch, here: Path) -> list[Asked]:
    """Requests to hosts that the command sends, in a site with two hosts."""
    (here / "inventory.py").write_text(
        "sparks = ['a', ('b', {'bootstrap': ['docker']})]\n", encoding="utf-8"
    )

    def answer(_: Asked) -> dict[str, Any]:
        passwords.append(given())
        return {}

    return answering(monkeypatch, answer)


def _call(*arguments: str) -> tuple[int, str]:
    done = run("bootstrap", "inventory.py", *arguments)
    return done.exit_code, done.output


def test_bootstrap_runs_the_steps_of_the_settings(became: list[Asked]) -> None:
    assert _call()[0] == 0
    (change,) = became
    assert (change.name, change.hosts) == ("bootstrapped", Hosts(Path("inventory.py")))
    assert change.options == {"as_json": False, "dry": False, "makes_secrets": True}


def test_the_command_line_names_steps_reboot_and_hosts(became: list[Asked]) -> None:
    arguments = [
        "--limit",
        "a",
        "--step",
        "docker",
        "--step",
        "swap",
        "--step",
        "docker",
        "--reboot",
    ]
    assert _call(*arguments, "--dry")[0] == 0
    (change,) = became
    overrides = ('bootstrap=["docker", "swap"]', "bootstrap_reboot=True")
    assert change.hosts == Hosts(Path("inventory.py"), overrides, ("a",))
    assert change.options == {"as_json": False, "dry": True, "makes_secrets": False}


def test_bootstrap_without_a_named_step_changes_nothing(became: list[Asked]) -> None:
    code, text = _call("--limit", "a")
    assert (code, became) == (2, [])
    assert "the settings of the hosts name no bootstrap step" in text


def test_the_password_is_prompted_for_and_is_never_an_argument(
    became: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = _call("--password")
    assert (code, became) == (2, [])
    assert "there is no terminal" in text
    monkeypatch.setattr(bootstrap_command, "_asks", lambda: True)
    assert _call("--password")[0] == 0
    assert passwords[-1] == {"same_sudo_password": True}


def test_an_unknown_step_is_refused(became: list[Asked]) -> None:
    assert _call("--step", "dokcer")[0] == 2
    assert became == []
