"""A host writes escape sequences wherever its words are shown: no terminal obeys one."""

import json
import logging
import unicodedata
from io import BytesIO
from queue import Queue
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner
from pyinfra.connectors import local, ssh, util

from sparkwright.cli.lib.options import print_json
from sparkwright.facts import hooks, output
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.findings.render import text
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.lib.records import decode
from sparkwright.host.lock import Owner
from sparkwright.host.release import Phase
from sparkwright.operations.live import Live
from sparkwright.results.disk_usage import render as render_usage
from sparkwright.results.progress import line, phases, together
from sparkwright.results.run_summary import Row, render
from sparkwright.results.status import Deployment, render_diff, render_history, render_status
from sparkwright.text.lock_owner import described
from sparkwright.text.visible import visible, visible_but_colours
from tests.tables import Tables

TABLES = Tables(__file__)

#: Clears the screen, names the window, writes to the clipboard; a CSI of one byte; a line that is
#: overwritten; text that runs backwards; a zero-width space; half a pair.
EVIL = "a\x1b[2J\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x9b31m\rb\u202ec\u200bd\x7f\ud800\U000e0041"


def harmless(message: str) -> bool:
    """Whether a terminal shows this text and does nothing else."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return not any(unicodedata.category(item) in kinds for item in message if item != "\n")


def test_everything_that_is_no_letter_is_visible() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert harmless(visible(every, len(every)))
    assert visible("\x1b[31m\u202e\n") == r"\x1b[31m\u202e\n"
    assert visible("Grüße, 東京 → 5 µs") == "Grüße, 東京 → 5 µs"
    assert visible("x" * 5000).endswith("… (3000 characters more)")


def test_findings() -> None:
    finding = Finding(
        EVIL, Severity.ERROR, Subject(EVIL, EVIL, EVIL, EVIL), EVIL, EVIL, EVIL, EVIL, EVIL
    )
    assert harmless(text([finding]))
    forged = Finding("a", Severity.ERROR, observed="x\nerror: forged")
    assert "\nerror: forged" not in text([forged])


STATUS: dict[str, Any] = json.loads(
    json.dumps(TABLES.data["STATUS"]).replace("EVIL", json.dumps(EVIL)[1:-1])
)


@pytest.mark.parametrize(
    "shown", [render_status, lambda seen: render_history(seen, 9), render_diff], ids="sht"
)
def test_status_history_lock_and_watch(shown: Any) -> None:
    message = shown({"h": decode(Deployment, STATUS)})
    assert message
    assert harmless(message)


def test_the_report_of_a_run() -> None:
    row = Row("h", (), f"{EVIL}\nNOT as planned: nothing\n{EVIL}", (), (), 1)
    message = render([row], dry=False, seconds=1.0, keys={"spark-1": "k"})
    assert harmless(message)
    assert "\nNOT as planned: nothing" not in message


def test_progress_disk_usage_and_who_holds_the_lock(capsys: pytest.CaptureFixture[str]) -> None:
    assert harmless(line(together({"body": FetchProgress(EVIL, 1, 2, source=EVIL)})))
    assert harmless(described(Owner("t", EVIL), 5.0))
    item = {"kind": EVIL, "name": EVIL, "path": EVIL, "size": 1, "frees": 1, "fault": EVIL}
    assert harmless(
        render_usage({"h": decode(DiskUsage, {"things": [item], "foreign": [EVIL]})}, pruning=False)
    )
    assert harmless(phases({EVIL: Phase(EVIL, 1.0, 2.0)}, 5.0))
    live = Live()
    live.tell(SimpleNamespace(name="h", log=lambda text: click.echo(text, err=True)), EVIL, None)  # type: ignore[arg-type]
    assert harmless(click.unstyle(capsys.readouterr().err))


def test_json_of_commands_holds_the_same_text_without_its_effect() -> None:
    @click.command()
    def command() -> None:
        print_json({EVIL: [EVIL]})

    message = CliRunner().invoke(command).output
    assert harmless(message)
    assert json.loads(message) == {EVIL: [EVIL]}


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra with what every run of ours puts into it, for one test."""
    monkeypatch.setattr(util, "read_buffer", util.read_buffer)
    for connector in (ssh, local):
        now = connector.execute_command_with_sudo_retry
        monkeypatch.setattr(connector, "execute_command_with_sudo_retry", now)
    hooks.guard_connections()


@pytest.mark.parametrize("name", ["pyinfra", "paramiko.transport"])
@pytest.mark.usefixtures("guarded")
def test_lines_of_libraries_too(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """An SSH banner that is none is part of paramiko's message."""
    logger = logging.getLogger(name)
    logger.addHandler(caplog.handler)
    try:
        logger.error("banner %s", EVIL)
    finally:
        logger.removeHandler(caplog.handler)
    assert harmless(caplog.records[-1].getMessage())
    assert visible_but_colours(click.style("x", fg="red")) == click.style("x", fg="red")
    assert "\x1b" not in visible_but_colours("\x1b[8mhidden")


def test_a_commands_own_output_is_shown_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(output, "echo", lambda message, **_: shown.append(message))
    lines: Queue[util.OutputLine] = Queue()
    output.read("stdout", BytesIO(b"\x1b[2Ja\n\xff\nb"), lines, print_output=True)
    assert [item.line for item in lines.queue] == ["\x1b[2Ja", "\\xff", "b"]
    assert shown == ["\\x1b[2Ja", "\\xff", "b"]


@pytest.mark.parametrize("endless", [b"x" * (1 << 16), b"\n" * (1 << 16)], ids=["line", "lines"])
def test_output_without_end_is_not_read(endless: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        read, closed = 0, False

        def readline(self, size: int) -> bytes:
            self.read += size
            return endless

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(output, "MOST_BYTES", 1 << 20)
    stream = Stream()
    lines: Queue[util.OutputLine] = Queue()
    output.read("stdout", stream, lines)
    assert stream.closed
    assert stream.read <= 2 << 20
    assert list(lines.queue)[-1].buffer_name == "stderr"
    assert "more than 1 MiB of output" in list(lines.queue)[-1].line


@pytest.mark.usefixtures("guarded")
def test_a_host_that_asks_for_a_password_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra asks for sudo's where a failing command prints this line, and tells the host."""

    def asked(_: str) -> str:
        raise AssertionError("the user was asked")

    monkeypatch.setattr(util, "getpass", asked)
    command_output = util.CommandOutput([util.OutputLine("stderr", "sudo: a password is required")])
    for connector in (ssh, local):
        retry: Any = connector.execute_command_with_sudo_retry
        assert retry(None, {}, lambda: (1, command_output)) == (1, command_output)
