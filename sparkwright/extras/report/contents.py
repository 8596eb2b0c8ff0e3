"""What the page says: plain data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, computed_field
from pydantic.json_schema import SkipJsonSchema

from sparkwright.checks.configuration.parts import Memory
from sparkwright.extras.report.inputs import Switch
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult
from sparkwright.results.page import Section, Weighed, Weight


@dataclass(frozen=True)
class FleetRow:
    """One service of a host. Unknown is None.

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
    """One service's smoke test, by check; ``failures`` in the test's own words."""

    host: str
    service: str
    checks: Mapping[str, CheckResult]
    passed: int
    total: int
    seconds: float
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Version:
    """One version of something, and the hosts that have it."""

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
