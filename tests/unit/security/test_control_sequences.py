"""Texts that a terminal or a shell would interpret, in logs, marks and command lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkwright.cli.lib.hosts import SECRETS
from sparkwright.cli.lib.journals import journalctl
from sparkwright.host.control import ControlAnswer
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.lib.records import decode
from sparkwright.host.logs import LogLine, LogsAnswer
from sparkwright.host.maintenance import MaintenanceAnswer
from tests.unit.builders import ROOT
from tests.unit.cli.answering import answering, exits, run
from tests.unit.security.test_hostile_answers import harmless

#: Text that sets the window's title, hides a line, reverses its direction, and imitates a line of
#: another host.
ATTACK = "\x1b]0;owned\x07\x1b[2K\rspark-2 qwen36: all is well\u202e\x9b8m\nspark-2: forged"
#: Colours that a program of the host may use.
PAINTED = "\x1b[32mINFO\x1b[0m ready"
LINE = {"at": 1.0, "service": "qwen36", "text": ATTACK}
#: Fake of ssh that runs the command with a shell, and fakes of sudo and docker that print their
#: arguments.
SSH = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
at = words.index("--")
open(os.environ["SAID"], "w").write(json.dumps(words[:at + 2]))
sys.exit(subprocess.run(["/bin/sh", "-c", words[at + 2]]).returncode)
"""
SUDO = "#!{python}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"
JOURNAL = """#!{python}
import json, sys
for text in {lines!r}:
    print(json.dumps({{"MESSAGE": text, "_SYSTEMD_UNIT": "sparkwright-qwen36.service",
                      "__REALTIME_TIMESTAMP": "1000000"}}))
print("Connection closed \\x1b[2J", file=sys.stderr)
sys.exit(255)
"""


@pytest.fixture
def site(here: Path) -> Path:
    """A site with a host whose name and data attack as far as an inventory allows."""
    data = {
        "ssh_user": "ann", "ssh_port": 2222, "ssh_key": "~/a key", "services": {"qwen36": {}},
        "ssh_hostname": "-oProxyCommand=touch pwned",
    }  # fmt: skip
    (here / "inventory").mkdir()
    (here / "inventory/lab.py").write_text(f"boxes = [('spark-1', {data!r})]\n")
    return here


def _program(folder: Path, name: str, text: str, **more: Any) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / name
    path.write_text(text.format(python=sys.executable, **more))
    path.chmod(0o755)


def _sparkwright(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-c", "from sparkwright.cli import main; main()", *arguments],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "SAID": str(folder / "said")},
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


WORDS = ("a  b", "$(touch pwned)", "; touch pwned;", "'\"`touch pwned`", "--privileged", "")


def test_arguments_of_a_command_reach_the_container_unchanged(site: Path) -> None:
    _program(site, "ssh", SSH)
    _program(site, "sudo", SUDO)
    done = _sparkwright(site, "shell", "--host", "spark-1", "--", "echo", *WORDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        "-n", "docker", "exec", "-i", "sparkwright-qwen36", "echo", *WORDS
    ]  # fmt: skip
    assert not (site / "pwned").exists()
    # A host of the inventory never becomes an option of ssh.
    data = json.loads((site / "said").read_text())
    assert data[-2:] == ["--", "-oProxyCommand=touch pwned"]
    assert {
        "-T", "Port=2222", "User=ann", f'IdentityFile="{Path("~/a key").expanduser()}"',
        "IdentitiesOnly=yes", "StrictHostKeyChecking=accept-new", "BatchMode=yes",
    } < set(data[:-2])  # fmt: skip


@pytest.mark.parametrize("name", ["--privileged", "../../x", "x; touch pwned", "qwen63", ""])
def test_an_unknown_service_reaches_no_command(site: Path, name: str) -> None:
    _program(site, "ssh", SSH)
    done = _sparkwright(site, "shell", "--host", "spark-1", f"--service={name}", "--", "id")
    assert done.returncode == 2
    assert "name one service, such as spark-1/qwen36" in done.stderr
    assert not (site / "said").exists()
    assert not (site / "pwned").exists()


def test_a_log_sends_no_control_sequences(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tuple(decode(LogLine, item) for item in (LINE, {**LINE, "text": PAINTED}))
    answering(monkeypatch, lambda _: {"spark-1": LogsAnswer(("qwen36",), lines, fault=ATTACK)})
    done = run("logs")
    assert harmless(done.output), repr(done.output)
    shown = done.stdout.splitlines()
    assert len(shown) == 2
    assert "\\x1b]0;owned\\x07" in shown[0]
    assert shown[1].endswith("spark-1 qwen36: INFO ready")
    done = run("logs", "--json")
    assert harmless(done.stdout)
    assert json.loads(done.stdout)[0]["text"] == ATTACK


def test_a_followed_log_sends_no_control_sequences(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(site, "ssh", JOURNAL, lines=[ATTACK, PAINTED, "x" * 3000])
    monkeypatch.setenv("PATH", f"{site / 'bin'}:{os.environ['PATH']}")
    answering(
        monkeypatch, lambda _: {"spark-1": LogsAnswer(("qwen36", "$(id)"), cursor="$(touch pwned)")}
    )
    done = exits(1, "logs", "-f")
    assert harmless(done.output), repr(done.output)
    # A line break in a message begins a line of the same service, never a line of another host.
    assert [line.split(": ")[0].split()[-2:] for line in done.stdout.splitlines()] == [
        ["spark-1", "qwen36"]
    ] * len(done.stdout.splitlines())
    assert "Connection closed \\x1b[2J" in done.stderr


def test_no_shell_runs_a_hosts_own_text() -> None:
    arguments = journalctl({"sparkwright-qwen36.service": "qwen36"}, "$(touch pwned)")
    assert arguments[-2:] == ["--lines=0", "--unit=sparkwright-qwen36.service"]
    arguments = journalctl({"sparkwright-qwen36.service": "qwen36"}, "s=0a;i=1f")
    assert "--after-cursor=s=0a;i=1f" in arguments


def test_an_answer_sends_no_control_sequences(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(
        monkeypatch, lambda _: {"spark-1": ControlAnswer(("q",), {ATTACK: ATTACK}, (ATTACK,))}
    )
    done = run("stop", "--yes")
    assert harmless(done.output), repr(done.output)
    mark = Maintenance(ATTACK, 1.0, ATTACK)
    answering(
        monkeypatch, lambda _: {"spark-1": MaintenanceAnswer(mark, (ATTACK,), (ATTACK,), (ATTACK,))}
    )
    done = run("maintenance", "spark-1", "on")
    assert harmless(done.output), repr(done.output)


def test_the_command_line_overrides_the_inventory(site: Path) -> None:
    _program(site, "ssh", SSH)
    _program(site, "sudo", SUDO)
    arguments = ("--user", "bob", "--ssh-port", "22", "--host", "spark-1")
    assert _sparkwright(site, "shell", *arguments).returncode == 0
    assert {"Port=22", "User=bob"} < set(json.loads((site / "said").read_text()))


@pytest.mark.parametrize("command", ["status", "deploy", "key list"])
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("joined", [True, False])
def test_no_password_reaches_a_command_line(
    command: str, name: str, joined: bool, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    """Every user of the controller can read command lines."""
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("pyinfra was started"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it was started"))
    arguments = [f"{name}=s3cret"] if joined else [name, "s3cret"]
    done = exits(2, *command.split(), "inventory/lab.py", *arguments)
    assert f"{name}\n      observed: a password on a command line" in done.output
    assert "s3cret" not in done.output
