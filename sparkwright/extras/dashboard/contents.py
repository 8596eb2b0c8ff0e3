"""Contents of the page, as plain data, and the files of earlier runs on the controller."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, computed_field
from pydantic.json_schema import SkipJsonSchema

from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.documents.generated_json import read as read_json
from sparkwright.documents.generated_json import valid
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult
from sparkwright.results import page, run_summary


@dataclass(frozen=True)
class LastRun:
    """Report of the site's last run (``report.as_json``), and the time of the run."""

    when: dt.datetime
    dry: bool
    hosts: tuple[run_summary.Row, ...]


@dataclass(frozen=True)
class Status:
    """Record of `sparkwright status`: changes of releases and findings, and the time of the record.

    Attributes:
        history: switches, the oldest first.
        findings: findings of the watches.
    """

    when: dt.datetime | None = None
    history: list[Any] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()


class Switch(BaseModel):
    """A change of a service's release on a host.

    Attributes:
        before: the previous release; None for the first release.
        down_seconds: seconds from the last answer of the old release to the first answer of the new
            release; None if unknown.
        ended: short result, such as ``serving`` or ``went back``.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    service: str
    who: str
    when: page.Moment
    before: str | None = None
    after: str
    down_seconds: float | None = None
    ended: str


@dataclass(frozen=True)
class FleetRow:
    """Row of a service in the fleet's table. Unknown values are None.

    Attributes:
        address: ``host:port`` for clients.
        state: state after the last run; ``measured only`` and ``not deployed`` if the run did not
            include the service.
        well: whether the service has no finding; a finding about its speed also counts.
        decode, first_token: tokens/s and seconds of one stream of a short prompt.
        measured: time of the measurement.
        models: ``repository@commit``, with a short commit.
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
    """A service's smoke test, by check; ``failures`` as the test reports them."""

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

    component: str
    value: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """All contents of the page.

    Attributes:
        last_run: time of the last run; None without a run.
        memory: memory by host, as planned; empty without an inventory.
        checks: names of the smoke test's checks, in the test's order.
        problems: files that could not be read.
        findings: findings, the most severe first.
        sections: further sections, of other extras.
        front: the first line: the most severe finding and its host.
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
    sections: Annotated[SkipJsonSchema[tuple[page.Section, ...]], Field(exclude=True)] = ()
    findings: tuple[page.Weighed, ...] = ()
    front: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Whether the page is without findings."""
        return all(finding.weight is page.Weight.WARNING for finding in self.findings)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def benches(self) -> list[dict[str, Any]]:
        """The newest result of each service, judged; empty without the extra `bench`."""
        return [bench for section in self.sections for bench in section.data.get("benches", ())]


def read_last_run(path: Path, problems: list[Finding]) -> LastRun | None:
    """The last run's record; None for a missing or unreadable record."""
    return _read(LastRun, path, problems)  # type: ignore[no-any-return]


def read_status(path: Path, problems: list[Finding]) -> Status:
    """Read the record of ``sparkwright status``; report unreadable entries of the history."""
    status = _read(Status, path, problems) or Status()
    entries = [
        valid(Switch, entry, f"{path}: history.{number}", problems)
        for number, entry in enumerate(status.history)
    ]
    return replace(status, history=sorted(filter(None, entries), key=lambda switch: switch.when))


def read_deep(directory: Path, problems: list[Finding]) -> tuple[DeepVerdict, ...]:
    """Read the results of ``sparkwright smoke``, one file per host and service."""
    verdicts = (_read(DeepVerdict, path, problems) for path in sorted(directory.glob("*.json")))
    return tuple(filter(None, verdicts))


def _read(kind: Any, path: Path, problems: list[Finding]) -> Any:
    """Read an optional file, with the time of its last change."""
    if not path.exists():
        return None
    when = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC)
    return read_json(kind, path, "remove the file and run the command again", problems, when=when)
