"""Logs of a host's services, from a journal with lines of other programs."""

import json
import os
from pathlib import Path

import pytest

from sparkwright.host import logs
from sparkwright.host.lib import files
from sparkwright.host.logs import LogLine, LogsRequest
from tests.host.programs import program

JOURNALCTL = """#!/bin/sh
for word; do echo "$word" >> "$HOST/said"; done
cat "$HOST/journal" 2>/dev/null
[ -e "$HOST/fails" ] && { echo "Failed to parse timestamp" >&2; exit 1; }
exit 0
"""


def _entry(text: object, unit: str = "sparkwright-a.service", **more: object) -> str:
    return json.dumps(
        {"__REALTIME_TIMESTAMP": "1764000000500000", "__CURSOR": "s=1;i=2", "MESSAGE": text,
         "_SYSTEMD_UNIT": unit, **more}
    )  # fmt: skip


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a", "b"):
        (tmp_path / "services" / name).mkdir(parents=True)
        files.point(tmp_path / "services" / name / "current", "releases/r")
    program(tmp_path / "bin", "journalctl", JOURNALCTL)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOST", str(tmp_path))
    return tmp_path


def test_the_last_lines_of_every_service_are_returned(host: Path) -> None:
    (host / "journal").write_text(
        "\n".join([
            _entry("\x1b[2KINFO ready"), _entry("two\nlines", "sparkwright-b.service"), "torn {",
            _entry("Started.", "init.scope", UNIT="sparkwright-a.service"),
            _entry(list(b"\x1b[0mraw \xff")), _entry(None), _entry({"a": 1}),
        ])
    )  # fmt: skip
    answer = logs.main(LogsRequest(services_root=str(host), lines=7, since="-600s"))
    assert answer.service_names == ("a", "b")
    assert [(line.service, line.text) for line in answer.lines] == [
        ("a", "INFO ready"), ("b", "two"), ("b", "lines"), ("a", "Started."),
        ("a", "\x1b[0mraw \ufffd"),
    ]  # fmt: skip
    assert answer.lines[0] == LogLine(1764000000.5, "a", "INFO ready")
    assert answer.cursor == "s=1;i=2"
    parts = (host / "said").read_text().split()
    assert parts[-4:] == [
        "--lines=7", "--since=-600s", "--unit=sparkwright-a.service", "--unit=sparkwright-b.service"
    ]  # fmt: skip


def test_an_answer_is_bounded(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_MOST", 10_000)
    (host / "journal").write_text("\n".join(_entry("x" * 5000) for _ in range(9)))
    answer = logs.main(LogsRequest(services_root=str(host)))
    assert [len(line.text) for line in answer.lines] == [4000, 4000]


@pytest.mark.parametrize(
    ("hidden", "texts"), [("GET /health", ["ready", "warm"]), ("", ["GET /health"] * 5)]
)
def test_hidden_lines_make_room_for_other_lines(host: Path, hidden: str, texts: list[str]) -> None:
    """The program reads more entries of the journal until it has enough lines, or all entries."""
    entries = [*map(_entry, ["ready", "warm"]), *[_entry("GET /health")] * 30]
    (host / "journal").write_text("\n".join(entries))
    program(host / "bin", "journalctl", JOURNALCTL.replace("cat ", "tail -n ${5#--lines=} "))
    answer = logs.main(LogsRequest(services_root=str(host), lines=5, hidden=hidden))
    assert [line.text for line in answer.lines] == texts
    assert answer.cursor


def test_a_failure_of_journalctl_is_reported(host: Path) -> None:
    (host / "fails").touch()
    answer = logs.main(LogsRequest(services_root=str(host)))
    assert (answer.lines, answer.fault) == ((), "Failed to parse timestamp")


@pytest.mark.parametrize(
    "name", ["--vacuum-size=1", "../../etc", "a.service", "a --no-pager", "*", "", "$(id)"]
)
def test_an_unknown_service_name_reaches_no_command(host: Path, name: str) -> None:
    answer = logs.main(LogsRequest((name,), str(host)))
    assert (answer.service_names, answer.lines, answer.fault) == (("a", "b"), (), "")
    assert not (host / "said").exists()
