"""Contents of the page, as plain data, and the files that runs leave on the controller for it."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, computed_field
from pydantic.json_schema import SkipJsonSchema

from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.documents.bounds import Unusable
from sparkwright.documents.json_text import generated_object
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.findings.validation import problems_of
from sparkwright.host.service import CheckResult
from sparkwright.results.page import Moment, Section, Weighed, Weight
from sparkwright.results.run_summary import Row


@dataclass(frozen=True)
class LastRun:
    """Report of the site's last run (``report.as_json``), and when it was written."""

    when: dt.datetime
    dry: bool
    hosts: tuple[Row, ...]


@dataclass(frozen=True)
class Reported:
    """Findings of `sparkwright status`, and when it asked."""

    when: dt.datetime
    findings: tuple[Finding, ...]


class Switch(BaseModel):
    """A change of a service's release on a host.

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


@dataclass(frozen=True)
class FleetRow:
    """A service of a host. Unknown values are None.

    Attributes:
        state: of the last run; ``measured only`` and ``not deployed`` where it has no part in it.
        well: whether nothing is wrong with it, its speed included.
        decode, first_token: tokens/s and seconds of one stream of a short prompt.
        measured: when they were measured.
        models: ``repository@commit``, the commit short.
    """

    host: str
    service: str
    state: str
    well: bool
    gpu: str | None = None
    driver: str | None = None
    address: str | None = None
    release: str | None = None
    tag: str | None = None
    image: str | None = None
    models: tuple[str, ...] = ()
    reason: str | None = None
    decode: float | None = None
    first_token: float | None = None
    measured: dt.datetime | None = None


@dataclass(frozen=True)
class SmokeRow:
    """A service's smoke test, by check; ``failures`` in the test's own words."""

    host: str
    service: str
    checks: Mapping[str, CheckResult]
    passed: int
    total: int
    seconds: float
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Version:
    """A version of a component, and the hosts that have it."""

    what: str
    value: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """Everything that the page says.

    Attributes:
        last_run: when the last run was; None where there was none.
        memory: by host, as planned; empty without an inventory.
        checks: names of the smoke test's checks, in its order.
        problems: files that could not be read.
        findings: what is wrong, the heaviest first.
        sections: further sections, of other extras.
        front: the first line: what is wrong, and where.
    """

    made: dt.datetime
    last_run: dt.datetime | None
    dry: bool
    fleet: tuple[FleetRow, ...]
    memory: Mapping[str, Memory]
    versions: tuple[Version, ...]
    checks: tuple[str, ...]
    smoke: tuple[SmokeRow, ...]
    history: tuple[Switch, ...]
    problems: tuple[Finding, ...]
    sections: Annotated[SkipJsonSchema[tuple[Section, ...]], Field(exclude=True)] = ()
    findings: tuple[Weighed, ...] = ()
    front: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Whether nothing was found."""
        return all(finding.weight is Weight.WARNING for finding in self.findings)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def benches(self) -> list[dict[str, Any]]:
        """The newest result of each service, judged; empty without the extra `bench`."""
        return [bench for section in self.sections for bench in section.data.get("benches", ())]


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
    """Read the results of ``sparkwright smoke``, one file per host and service."""
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
    try:
        return generated_object(path, "remove it and run again") if path.exists() else None
    except Unusable as error:
        problems.append(mistake(str(path), error.what, error.remedy))
        return None
