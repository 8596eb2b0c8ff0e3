"""Files that runs leave on the controller, from which the page is made."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.findings.validation import problems_of
from sparkwright.results.page import Moment
from sparkwright.results.run import Row


@dataclass(frozen=True)
class LastRun:
    """What the last run of the site reported (``report.as_json``), and when that was written."""

    when: dt.datetime
    dry: bool
    hosts: tuple[Row, ...]


@dataclass(frozen=True)
class Reported:
    """What `sparkwright status` found, and when it asked."""

    when: dt.datetime
    findings: tuple[Finding, ...]


class Switch(BaseModel):
    """One change of a service's release on a host.

    Attributes:
        before: the release that ran; None for the first.
        down_seconds: from the last answer of the old to the first of the new; None unknown.
        ended: how it ended, in a word or two: ``serving``, ``went back``.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    service: str
    who: str
    when: Moment
    before: str | None = None
    after: str
    down_seconds: float | None = None
    ended: str


def read_last_run(path: Path, problems: list[Finding]) -> LastRun | None:
    """The last run's record; None where there is none, or none that can be read."""
    if (data := _json(path, problems)) is None:
        return None
    rows = _valid(tuple[Row, ...], data.get("hosts"), f"{path}: hosts", problems)
    return None if rows is None else LastRun(_written(path), bool(data.get("dry")), rows)


def read_history(path: Path, problems: list[Finding]) -> tuple[Switch, ...]:
    """``{"history": [...]}``, the oldest first; an entry that can't be read is reported."""
    entries = (_json(path, problems) or {}).get("history", [])
    if not isinstance(entries, list):
        problems.append(mistake(f"{path}: history", "not a list", "write a list"))
        return ()
    read = [
        _valid(Switch, entry, f"{path}: history.{number}", problems)
        for number, entry in enumerate(entries)
    ]
    return tuple(sorted(filter(None, read), key=lambda switch: switch.when))


def read_reported(path: Path, problems: list[Finding]) -> Reported | None:
    """``{"findings": [...]}`` beside the history; None where the file has none."""
    data = _json(path, [])  # read_history tells what is wrong with it
    if data is None or "findings" not in data:
        return None
    findings = _valid(tuple[Finding, ...], data["findings"], f"{path}: findings", problems)
    return None if findings is None else Reported(_written(path), findings)


def read_deep(directory: Path, problems: list[Finding]) -> tuple[DeepVerdict, ...]:
    """What ``sparkwright smoke`` left, one file per host and service."""
    files = {path: _json(path, problems) for path in sorted(directory.glob("*.json"))}
    read = [_valid(DeepVerdict, data, str(path), problems) for path, data in files.items() if data]
    return tuple(filter(None, read))


def _valid(kind: Any, data: Any, where: str, problems: list[Finding]) -> Any:
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        problems.extend(problems_of(error, where))
        return None


def _written(path: Path) -> dt.datetime:
    return dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC)


def _json(path: Path, problems: list[Finding]) -> dict[str, Any] | None:
    """An object of a file that need not be there."""
    if not path.exists():
        return None
    remedy = "remove it and run again"
    try:
        # Stricter than Python's own reader: what it takes can be written into a page.
        data = from_json(path.read_bytes(), allow_inf_nan=False)
    except OSError as error:
        problems.append(mistake(str(path), f"can't be read: {error.strerror}", "fix its rights"))
        return None
    except ValueError as error:
        problems.append(mistake(str(path), f"not valid JSON: {error}", remedy))
        return None
    if isinstance(data, dict):
        return data
    problems.append(mistake(str(path), "not a JSON object", remedy))
    return None
