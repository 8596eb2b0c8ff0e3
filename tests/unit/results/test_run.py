"""The report: text at the end of a run, and the same report as data."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.smoke.result import Smoke
from sparkwright.results.run_summary import Row, ServiceRow, render

SERVICE = ServiceRow(
    name="qwen36",
    address="10.0.0.1:8000",
    served_names=("main", "fast"),
    tag="v1",
    image=f"ghcr.io/a/b:sha256-{'0' * 64}",
    models={"org/body": "c" * 40},
    release="abc",
    smoke=Smoke(passed=4, total=4, seconds=1.25, failures=()),
)


def row(**changes: Any) -> Row:
    """A host as planned."""
    return replace(Row("spark-1", (SERVICE,), None, (), (), 2), **changes)


def text(*rows: Row, dry: bool = False) -> str:
    """The rendered report."""
    return render(rows, dry=dry, seconds=1.0, keys={"spark-1": "$(cat key)"})


def test_a_host_that_failed_after_changes_is_reported_as_failed() -> None:
    assert "failed" in text(row(refused="no answer", changes=("made /opt",)))


def test_a_dry_run_reports_a_service_as_planned() -> None:
    assert "planned" in text(row(services=(replace(SERVICE, smoke=None),)), dry=True)


def test_a_dry_run_counts_its_changes() -> None:
    bare = replace(SERVICE, smoke=None)
    looked = row(services=(bare,), pending=("restart", "watch"))
    assert "  3 changes would be made, 1.0 s" in text(looked, row(pending=("unit",)), dry=True)
    assert "  0 changes would be made, 1.0 s" in text(row(services=(bare,)), dry=True)
    assert "  0 changes, 1.0 s" in text(looked)


def test_the_last_line_has_the_reason_of_the_only_host_that_failed() -> None:
    failed = row(refused="refused by preflight: gpu\nmore of it")
    assert text(failed).endswith("\nNOT as planned: spark-1: refused by preflight: gpu\n")
    others = text(failed, row(host="spark-2", refused="no answer"))
    assert others.endswith("\nNOT as planned: spark-1, spark-2\n")


def test_the_report_fits_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(SERVICE, tag="2026-07-01-v0.24.0", release="56bd2d6ed23b")
    shown = row(services=(wide,), refused="word " * 40, changes=("restart",))
    whole = set(text(shown).split())
    monkeypatch.setenv("COLUMNS", "80")
    narrow = text(shown).partition("Example request:")[0]
    assert all(len(line) <= 80 for line in narrow.splitlines()), narrow
    assert set(narrow.split()) <= whole


def test_a_host_in_maintenance_is_neither_changed_nor_failed() -> None:
    bare = replace(SERVICE, smoke=None)
    seen = row(left="in maintenance for 3 min, by ann@laptop: a new fan", services=(bare,))
    message = text(seen)
    line = next(line for line in message.splitlines() if line.startswith("spark-1"))
    assert line.split() == ["spark-1", "qwen36", "maintenance", "-", "-", "-", "-"]
    assert "  spark-1: in maintenance for 3 min, by ann@laptop: a new fan: left alone" in message
    assert "0 changes" in message
    assert "NOT as planned" not in message


def test_the_command_to_paste_calls_the_route_of_a_model_that_pools() -> None:
    routes: list[dict[str, str]] = [{}, {"rerank": "/v1/rerank"}, {"transcription": "/v1/audio"}]
    chats, pools, hears = (text(row(services=(replace(SERVICE, routes=each),))) for each in routes)
    assert "http://10.0.0.1:8000/v1/audio -H" in hears
    assert "-F model=main -F file=@speech.wav" in hears
    assert "http://10.0.0.1:8000/v1/chat/completions -H" in chats
    (line,) = [line for line in pools.splitlines() if line.startswith("  curl")]
    assert "http://10.0.0.1:8000/v1/rerank -H" in line
    body = json.loads(line.split(" -d ")[1].strip("'"))
    assert body["model"] == "main"
    assert body.keys() == {"model", "query", "documents"}


def test_the_command_to_paste_is_quoted_for_a_shell_in_any_folder() -> None:
    secured = replace(
        SERVICE, address="[fd00::1]:8000", scheme="https", ca="my ca.crt", served_names=("it's",)
    )
    (line,) = [line for line in text(row(services=(secured,))).splitlines() if "curl" in line]
    arguments = shlex.split(line)
    assert arguments[:5] == [
        "curl", "-s", "--cacert", str(Path("my ca.crt").absolute()),
        "https://[fd00::1]:8000/v1/chat/completions",
    ]  # fmt: skip
    assert "'https://[" in line  # zsh would expand an unquoted [...]
    assert json.loads(arguments[-1])["model"] == "it's"
