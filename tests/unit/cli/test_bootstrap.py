"""``sparkwright bootstrap``: which pyinfra it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkwright.cli import bootstrap as bootstrap_command
from sparkwright.cli import main
from sparkwright.cli.lib import hosts


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What it runs in its place."""
    found: list[str] = []

    def become(words: list[str]) -> None:
        found.extend(words)

    monkeypatch.setattr(bootstrap_command, "become", become)
    monkeypatch.setattr(hosts, "pyinfra", lambda: "pyinfra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory.py").write_text(
        "sparks = ['a', ('b', {'bootstrap': ['docker']})]\n", encoding="utf-8"
    )
    return found


def _call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["bootstrap", "inventory.py", *words])
    return done.exit_code, done.output


def test_the_steps_of_the_settings(became: list[str]) -> None:
    assert _call()[0] == 0
    assert became == ["pyinfra", "--yes", "inventory.py", "roles.bootstrap.bootstrap"]


def test_steps_reboot_and_hosts_of_the_command_line(became: list[str]) -> None:
    words = ["--limit", "a", "--step", "docker", "--step", "swap", "--step", "docker", "--reboot"]
    assert _call(*words, "--dry")[0] == 0
    assert became == [
        "pyinfra", "--dry", "--limit", "a", "--data", 'bootstrap=["docker", "swap"]',
        "--data", "bootstrap_reboot=True", "inventory.py", "roles.bootstrap.bootstrap",
    ]  # fmt: skip


def test_nothing_is_done_where_no_step_is_named(became: list[str]) -> None:
    code, said = _call("--limit", "a")
    assert (code, became) == (2, [])
    assert "no host's settings name a step" in said


def test_the_password_is_asked_for_on_a_terminal_and_is_no_word(
    became: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = _call("--password")
    assert (code, became) == (2, [])
    assert "there is none" in said
    monkeypatch.setattr(bootstrap_command, "_asks", lambda: True)
    assert _call("--password")[0] == 0
    assert became[:3] == ["pyinfra", "--same-sudo-password", "--yes"]


def test_an_unknown_step_is_no_step(became: list[str]) -> None:
    assert _call("--step", "dokcer")[0] == 2
    assert became == []
