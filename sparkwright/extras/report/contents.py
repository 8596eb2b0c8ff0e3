"""What the page says: plain data."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from pydantic import computed_field

from sparkwright.checks.configuration.parts import Memory
from sparkwright.extras.bench.compare import CellComparison
from sparkwright.extras.bench.history import Regression
from sparkwright.extras.bench.results import Result
from sparkwright.extras.report.inputs import Switch
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult


class Weight(IntEnum):
    """How much it matters, the heaviest first."""

    DOWN = 0
    WRONG = 1
    SLOW = 2
    BELOW_CARD = 3
    WARNING = 4
    FILE = 5


@dataclass(frozen=True)
class Weighed:
    """One finding.

    Attributes:
        what: after hosts and service: ``answers 31 % slower since the driver changed 1 → 2``.
        low, high: share that ``what`` names as ``{}``; None where it names none.
        began: since when, as far as that is known.
        seen: when that was seen.
        more: what explains it, and what to do: a line each.
    """

    weight: Weight
    hosts: tuple[str, ...]
    service: str | None
    what: str
    low: float | None = None
    high: float | None = None
    began: dt.datetime | None = None
    seen: dt.datetime | None = None
    more: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """``what`` with its share."""
        if self.low is None or self.high is None:
            return self.what
        low, high = (f"{100 * share:.0f}" for share in (self.low, self.high))
        return self.what.replace("{}", low if low == high else f"{low} to {high}", 1)


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
    gpu: str | None
    driver: str | None
    address: str | None
    release: str | None
    tag: str | None
    image: str | None
    models: tuple[str, ...]
    reason: str | None
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
class Bench:
    """A service's newest result, judged."""

    result: Result
    cells: tuple[CellComparison, ...]
    regressions: tuple[Regression, ...]
    runs: int

    @property
    def compared(self) -> int:
        """How many figures a card has something to say of."""
        return sum(len(cell.verdicts) for cell in self.cells)

    @property
    def in_range(self) -> int:
        """How many of them are in range."""
        return sum(verdict.state == "in range" for cell in self.cells for verdict in cell.verdicts)

    @property
    def worse(self) -> int:
        """How many are on the wrong side of their range."""
        return sum(len(cell.worse) for cell in self.cells)

    @property
    def errors(self) -> int:
        """How many requests failed."""
        return sum(cell.cell.errors for cell in self.cells)

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """The cards' tables that it was held against, and who says them."""
        pairs = [(v.table, v.source) for cell in self.cells for v in cell.verdicts]
        return tuple(dict.fromkeys(pairs))

    @property
    def well(self) -> bool:
        """Whether nothing is wrong with it."""
        return not (self.worse or self.regressions or self.errors)


@dataclass(frozen=True)
class Page:
    """Everything that the page says.

    Attributes:
        last_run: when the last run was; None where there was none.
        memory: by host, as planned; empty without an inventory.
        checks: names of the smoke test's checks, in its order.
        problems: files that could not be read.
        findings: what is wrong, the heaviest first.
    """

    made: dt.datetime
    last_run: dt.datetime | None
    dry: bool
    fleet: tuple[FleetRow, ...]
    memory: Mapping[str, Memory]
    versions: tuple[Version, ...]
    checks: tuple[str, ...]
    smoke: tuple[SmokeRow, ...]
    benches: tuple[Bench, ...]
    history: tuple[Switch, ...]
    problems: tuple[Finding, ...]
    findings: tuple[Weighed, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Whether nothing was found."""
        return all(one.weight is Weight.WARNING for one in self.findings)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts as people count: spark-2 before spark-10."""
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"([0-9]+)", name)
    )
