"""Commands of hosts whose language is not English."""

from pathlib import Path

import pytest

from sparkwright.host.lib import packages
from sparkwright.host.lib.processes import run

#: apt's and ufw's own translations; with LC_ALL, LANG and LANGUAGE have no effect.
GERMAN = """#!/bin/sh
english() { case "$LC_ALL" in C*) return 0 ;; *) return 1 ;; esac }
case "$0 $1" in
*apt-cache*) english && echo "  Candidate: 2.8.5" || echo "  Installationskandidat: 2.8.5" ;;
*ufw*) english && echo "Status: active" || echo "Status: Aktiv" ;;
esac
"""


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("apt-cache", "apt-get", "ufw"):
        (tmp_path / name).write_text(GERMAN)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.delenv("LC_ALL", raising=False)


def test_output_of_commands_is_in_english(german: None) -> None:
    assert packages.Question("haproxy-x").answer().candidate == "2.8.5"
    assert run("ufw", "status").out == "Status: active\n"


def test_output_of_commands_with_their_own_environment_is_in_english(german: None) -> None:
    text = run("sh", "-c", "echo $LC_ALL $HERE", environment={"HERE": "x", "LC_ALL": "de_DE.UTF-8"})
    assert text.out == "C.UTF-8 x\n"
