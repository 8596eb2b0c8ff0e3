"""Hostile answers of hosts: read within bounds, and shown as text."""

import json
import logging
import subprocess
import sys
import unicodedata
from io import BytesIO
from queue import Queue
from types import SimpleNamespace, UnionType
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pyinfra.connectors import local, ssh, util

from sparkwright.checks.host.judge import judge
from sparkwright.checks.service.diagnose import diagnose
from sparkwright.cli.lib.options import print_json
from sparkwright.facts import hooks, output, programs
from sparkwright.facts.answers import MOST_DEPTH, MOST_TEXT, HostError, of_each, parse
from sparkwright.facts.programs import BEGIN, END
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.findings.render import text
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.doctor import Examination
from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib import records
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.lock import LockAnswer, Owner
from sparkwright.host.observe import Observation
from sparkwright.host.release import Phase
from sparkwright.host.removal import RemovalAnswer
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.host.smoke.deep import DeepAnswer
from sparkwright.host.status import HostStatus
from sparkwright.host.verify_models import Verified
from sparkwright.operations.lib.progress import Live
from sparkwright.plan.missing import shared
from sparkwright.results.disk_usage import render as render_usage
from sparkwright.results.progress import line, phases, together
from sparkwright.results.run_summary import Row, render
from sparkwright.results.status import Deployment, render_diff, render_history, render_status
from sparkwright.text.lock_owner import described
from sparkwright.text.visible import visible, visible_but_colours
from tests.tables import Tables
from tests.unit.builders import plan, wanted
from tests.unit.checks.service.builders import facts

#: Types of the answers of all host programs.
ANSWERS: list[Any] = [
    Observation, HostStatus, Examination, DiskUsage, LockAnswer, RemovalAnswer,
    tuple[str, ...], dict[str, JobStatus], dict[str, SmokeAnswer], dict[str, DeepAnswer],
    dict[str, Verified],
]  # fmt: skip

DESIRED = wanted(plan())

_TEXT = st.sampled_from(
    ["", "chat", "qwen36", "\x1b[2J", "9" * 5000, "-1", "nan", "1e999", "\ud800", "a=b", "\u0661",
     "12.1", "580.95", "active", "active\n", "--max-model-len \"", "2026-01-01T00:00:00Z", "{[",
     "NVRM: Xid (x): " + "9" * 5000, "NVIDIA GB10", "error", "99999.99999", "9" * 5000 + ".1"]
)  # fmt: skip

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _TEXT

_ANY = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Strange JSON data that a contract accepts."""
    if hasattr(kind, "__dataclass_fields__"):
        fields = records._fields(kind)
        return st.fixed_dictionaries({name: of(inner) for name, (inner, _) in fields.items()})
    if isinstance(kind, UnionType):
        return st.one_of(*(st.none() if item is type(None) else of(item) for item in kind.__args__))
    origin: Any = getattr(kind, "__origin__", None)
    parts: tuple[Any, ...] = getattr(kind, "__args__", ())
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(of(parts[0]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(of, parts)).map(list)
    if origin is dict:
        keys = st.integers(0, 65535).map(str) if parts[0] is int else _TEXT
        return st.dictionaries(keys, of(parts[1]), max_size=2)
    whole = st.integers(-(1 << 63), 1 << 63)
    plain = {str: _TEXT, bool: st.booleans(), int: whole, object: _ANY}
    if kind is float:
        return whole | st.floats(-1e19, 1e19)
    return plain[kind] if kind in plain else st.sampled_from([item.value for item in kind])


def _marked(answer: str) -> list[str]:
    return [BEGIN, answer, END]


@given(st.sampled_from(ANSWERS), _ANY)
def test_any_json_of_a_host_is_judged_or_refused(kind: Any, data: Any) -> None:
    text = "l: "
    try:
        encode(parse("l", _marked(json.dumps(data)), kind))
    except HostError as error:
        text = str(error)
    assert text.startswith("l: ")
    assert len(text) < 2000


@pytest.mark.parametrize("value", [None, "x", [], {}, float("nan"), 1e300, True], ids=str)
def test_one_wrong_field_is_named(value: Any) -> None:
    answer = encode(HostStatus(1.0, None, None, (), {}))
    assert parse("l", _marked(json.dumps(answer)), HostStatus)
    answer["now"] = value
    with pytest.raises(HostError, match=r"l: not a valid answer: HostStatus.now: .*do not trust"):
        parse("l", _marked(json.dumps(answer)), HostStatus)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("{}", "Observation: time is missing"),
        ("[" * 100_000, f"more than {MOST_DEPTH} nested lists"),
        ('{"a":' * 100_000, f"more than {MOST_DEPTH} nested lists"),
        ("[" * 100_000 + "]" * 100_000, f"more than {MOST_DEPTH} nested lists"),
        ('"' + "\\" * 100_001, "it is not JSON"),
        ('"' * 200_000, "it is not JSON"),
        ("9" * 5000, "it is not JSON"),
        ("x" * (MOST_TEXT + 1), "more than 8 MiB"),
        ("\x1b[2J", "it is not JSON"),
    ],
    ids=range(10),
)
def test_a_missing_answer_fails_the_host(text: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        parse("l", _marked(text), Observation)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no answer: the host's login ends before"),
        (["{}"], "no answer: the host's login ends before"),
        ([END, "{}"], "no answer: the host's login ends before"),
        ([BEGIN, "[]"], "it does not end"),
        ([END, BEGIN, "[]"], "it does not end"),
        ([BEGIN, "[]", END, BEGIN], "it does not end"),
        ([BEGIN, "[1", BEGIN, "[2", END], "it is not JSON"),
    ],
)
def test_an_answer_is_read_between_its_marks(lines: list[str], message: str) -> None:
    with pytest.raises(HostError, match=message):
        parse("l", lines, object)


@pytest.mark.parametrize(
    "message",
    [f'{END}\n{BEGIN}\n["evil"]\n{END}', f'\r{END}\r{BEGIN}\r["evil"]\r{END}\r', BEGIN, END],
)
def test_quoted_marks_do_not_end_an_answer(message: str) -> None:
    """A log that the doctor reads is foreign text: it can't replace sparkwright's answer."""
    sent = json.loads(programs.payload(records, {}))
    sent["modules"]["evil"] = f"def main(request: object) -> object:\n    return {[message]!r}\n"
    done = subprocess.run(
        [sys.executable, "-IS", "-c", programs.BY_STANDARD_INPUT],
        input=json.dumps(sent), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert parse("l", done.stdout.split("\n"), object) == [message]


def test_brackets_within_texts_are_ignored() -> None:
    text = json.dumps(["[" * 5000, '\\"[' * 500])
    assert parse("l", _marked(text), tuple[str, ...]) == ("[" * 5000, '\\"[' * 500)


def test_an_answer_has_exactly_the_requested_names() -> None:
    of_each("l", ["a"], {"a": 1})
    with pytest.raises(HostError, match="there is no answer about a"):
        of_each("l", ["a"], {})
    with pytest.raises(HostError, match="was not requested"):
        of_each("l", ["a"], {"a": 1, "../../b": 2})


def test_a_hosts_text_is_shortened_in_messages() -> None:
    assert len(str(HostError("\n".join(["x" * 100_000] * 1000)))) < 40_000


def _parsed(kind: Any, data: Any) -> Any:
    return encode(parse("l", _marked(json.dumps(data)), kind))


@given(of(Observation))
def test_any_observation_is_judged(data: Any) -> None:
    seen = parse("l", _marked(json.dumps(data)), Observation)
    judge(DESIRED, seen, now=0.0)
    shared(DESIRED, seen)


@given(of(HostStatus))
def test_any_status_is_shown(data: Any) -> None:
    seen = {"h": decode(Deployment, {**_parsed(HostStatus, data), "planned": {}})}
    for shown in (render_status, lambda item: render_history(item, 40), render_diff):
        assert isinstance(shown(seen), str)


@given(of(Examination))
def test_any_examination_is_diagnosed(data: Any) -> None:
    diagnose("h", facts({**_parsed(Examination, data), "planned": {}, "findings": []}))


@given(of(DiskUsage))
def test_any_disk_usage_is_listed(data: Any) -> None:
    assert render_usage({"h": decode(DiskUsage, _parsed(DiskUsage, data))}, pruning=False)


def test_an_invalid_process_id_does_not_count_as_a_dead_run() -> None:
    from sparkwright.operations.lib import locks

    for pid in (-1, 0, 1 << 40, 1 << 63):
        assert not locks._is_dead(Owner("t", "ann", locks.OWNER.machine, pid))


TABLES = Tables(__file__)

#: Text that clears the screen, names the window and writes to the clipboard; with a CSI of one
#: byte, an overwritten line, text that runs backwards, a zero-width space and half a surrogate
#: pair.
EVIL = "a\x1b[2J\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x9b31m\rb\u202ec\u200bd\x7f\ud800\U000e0041"


def harmless(message: str) -> bool:
    """Return whether a terminal only shows this text."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return not any(unicodedata.category(item) in kinds for item in message if item != "\n")


def test_control_characters_are_visible() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert harmless(visible(every, len(every)))
    assert visible("\x1b[31m\u202e\n") == r"\x1b[31m\u202e\n"
    assert visible("Grüße, 東京 → 5 µs") == "Grüße, 東京 → 5 µs"
    assert visible("x" * 5000).endswith("… (3000 characters more)")


def test_findings_are_escaped() -> None:
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
def test_status_history_lock_and_watch_are_escaped(shown: Any) -> None:
    message = shown({"h": decode(Deployment, STATUS)})
    assert message
    assert harmless(message)


def test_the_report_of_a_run_is_escaped() -> None:
    row = Row("h", (), f"{EVIL}\nNOT as planned: nothing\n{EVIL}", (), (), 1)
    message = render([row], dry=False, seconds=1.0, keys={"spark-1": "k"})
    assert harmless(message)
    assert "\nNOT as planned: nothing" not in message


def test_progress_disk_usage_and_lock_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_json_of_commands_holds_the_same_text_escaped() -> None:
    @click.command()
    def command() -> None:
        print_json({EVIL: [EVIL]})

    message = CliRunner().invoke(command).output
    assert harmless(message)
    assert json.loads(message) == {EVIL: [EVIL]}


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra with the hooks of every sparkwright run, for one test."""
    monkeypatch.setattr(util, "read_buffer", util.read_buffer)
    for connector in (ssh, local):
        now = connector.execute_command_with_sudo_retry
        monkeypatch.setattr(connector, "execute_command_with_sudo_retry", now)
    hooks.guard_connections()


@pytest.mark.usefixtures("guarded")
def test_an_answer_of_700_mib_is_not_read() -> None:
    code, text = util.run_local_process("head -c 734003200 /dev/zero")
    assert code != 0
    assert len(text.stdout) <= 66 << 20
    assert "more than 64 MiB of output: the rest was not read" in text.stderr


@pytest.mark.parametrize("name", ["pyinfra", "paramiko.transport"])
@pytest.mark.usefixtures("guarded")
def test_lines_of_libraries_are_escaped(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """An invalid SSH banner is part of paramiko's message."""
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
def test_a_password_prompt_of_a_host_gets_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra prompts for sudo's password if a failing command prints this line, and sends the
    password to the host.
    """

    def asked(_: str) -> str:
        raise AssertionError("the user was asked")

    monkeypatch.setattr(util, "getpass", asked)
    command_output = util.CommandOutput([util.OutputLine("stderr", "sudo: a password is required")])
    for connector in (ssh, local):
        retry: Any = connector.execute_command_with_sudo_retry
        assert retry(None, {}, lambda: (1, command_output)) == (1, command_output)
