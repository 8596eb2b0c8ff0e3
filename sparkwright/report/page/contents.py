"""What the page says: plain data, made from what was read; every judgement is made here."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import computed_field

from sparkwright.bench.compare import CellComparison, compare
from sparkwright.bench.history import Regression, regressions
from sparkwright.bench.published import tables
from sparkwright.bench.results import Result
from sparkwright.catalog import Catalog
from sparkwright.findings.finding import Finding
from sparkwright.host.contracts.smoke import CheckResult
from sparkwright.report.page.inputs import LastRun, Switch
from sparkwright.report.run import Row, ServiceRow, image_in_short, state
from sparkwright.rules.parts import Memory
from sparkwright.smoke.result import Smoke
from sparkwright.smoke.verdict import DeepVerdict

#: States of a service that is as planned.
_WELL = ("serving", "serving, changed", "planned")


@dataclass(frozen=True)
class FleetRow:
    """One service of a host. Unknown is None.

    Attributes:
        state: of the last run; ``measured only`` and ``not deployed`` where it has no part in it.
        well: whether nothing is wrong with it.
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Whether nothing was found."""
        return (
            all(row.well for row in self.fleet)
            and not any(row.failures for row in self.smoke)
            and all(bench.well for bench in self.benches)
            and not self.problems
        )


def judged(found: Sequence[Result], catalog: Catalog) -> Bench:
    """The newest of a service's results, held against the cards and against the others.

    Args:
        found: at least one, the oldest first.
    """
    causes = [cause for group in catalog.causes.values() for cause in group.causes]
    newest = found[-1]
    cells = compare(newest, tables(newest, catalog), causes)
    return Bench(newest, cells, regressions(newest, found), len(found))


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts as people count: spark-2 before spark-10."""
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"([0-9]+)", name)
    )


def page_of(
    *,
    made: dt.datetime,
    catalog: Catalog,
    last_run: LastRun | None = None,
    results: Mapping[tuple[str, str], Sequence[Result]] | None = None,
    history: Sequence[Switch] = (),
    deep: Sequence[DeepVerdict] = (),
    planned: Mapping[str, Sequence[str]] | None = None,
    memory: Mapping[str, Memory] | None = None,
    problems: Sequence[Finding] = (),
) -> Page:
    """Judge and arrange what was read.

    Args:
        results: (host, service) -> results, the oldest first; the newest is shown, the others are
            its past.
        deep: the deep smoke test's verdicts: shown instead of a run's where they are of the same
            release.
        planned: host -> services, where an inventory was given: only those hosts are shown.
    """
    rows = last_run.hosts if last_run else ()
    if planned is not None:
        rows = tuple(row for row in rows if row.host in planned)
    kept = {
        key: found
        for key, found in (results or {}).items()
        if found and (planned is None or key[0] in planned)
    }
    benches = tuple(
        judged(found, catalog)
        for _, found in sorted(kept.items(), key=lambda item: (natural(item[0][0]), item[0][1]))
    )
    newest = {key: found[-1] for key, found in kept.items()}
    dry = last_run.dry if last_run else False
    fleet = tuple(
        sorted(
            _fleet(rows, newest, planned or {}, dry=dry),
            key=lambda row: (natural(row.host), row.service),
        )
    )
    smoke = tuple(sorted(_smoke(rows, deep), key=lambda row: (natural(row.host), row.service)))
    return Page(
        made=made,
        last_run=last_run.when if last_run else None,
        dry=dry,
        fleet=fleet,
        memory=dict(sorted((memory or {}).items(), key=lambda item: natural(item[0]))),
        versions=tuple(_versions(fleet, newest)),
        checks=tuple(dict.fromkeys(name for row in smoke for name in row.checks)),
        smoke=smoke,
        benches=benches,
        history=tuple(
            switch
            for switch in sorted(history, key=lambda one: one.when, reverse=True)
            if planned is None or switch.host in planned
        ),
        problems=tuple(problems),
    )


def _fleet(
    rows: Iterable[Row],
    newest: Mapping[tuple[str, str], Result],
    planned: Mapping[str, Sequence[str]],
    *,
    dry: bool,
) -> Iterator[FleetRow]:
    shown: set[tuple[str, str]] = set()
    for row in rows:
        for service in row.services:
            shown.add((row.host, service.name))
            yield _of_run(row, service, newest.get((row.host, service.name)), dry=dry)
    for (host, name), result in newest.items():
        if (host, name) not in shown:
            shown.add((host, name))
            yield FleetRow(
                host, name, "measured only", True, result.gpu.name, result.gpu.driver, None,
                result.release, result.tag, None, _models(result.models), None,
            )  # fmt: skip
    for host, services in planned.items():
        for name in services:
            if (host, name) not in shown:
                yield FleetRow(
                    host, name, "not deployed", False, None, None, None, None, None, None, (), None
                )


def _of_run(row: Row, service: ServiceRow, measured: Result | None, *, dry: bool) -> FleetRow:
    said = state(row, service, dry)
    # Of a host that was left alone it is not known what runs there.
    known = said != "left alone"
    return FleetRow(
        host=row.host,
        service=service.name,
        state=said,
        well=said in _WELL,
        gpu=row.gpu or (measured.gpu.name if measured else None),
        driver=row.driver or (measured.gpu.driver if measured else None),
        address=service.address if known else None,
        release=service.release if known else None,
        tag=service.tag if known else None,
        image=image_in_short(service.image) if known else None,
        models=_models(service.models) if known else (),
        reason=row.refused,
    )


def _models(models: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{repository}@{commit[:12]}" for repository, commit in models.items())


def _smoke(rows: Iterable[Row], deep: Sequence[DeepVerdict]) -> Iterator[SmokeRow]:
    verdicts = {(one.host, one.service, one.release): one for one in deep}
    for row in rows:
        for service in row.services:
            verdict = verdicts.get((row.host, service.name, service.release))
            smoke = _short(verdict) if verdict else service.smoke
            if smoke:
                yield SmokeRow(
                    row.host,
                    service.name,
                    {check.name: check for check in smoke.checks},
                    smoke.passed,
                    smoke.total,
                    smoke.seconds,
                    smoke.failures,
                )


def _short(verdict: DeepVerdict) -> Smoke:
    """A deep verdict without what was skipped, and with what failures mean."""
    asked = [one for one in verdict.checks if one.verdict != "skipped"]
    checks = tuple(
        CheckResult(one.name, one.verdict == "passed", one.seconds, one.detail) for one in asked
    )
    return Smoke(
        passed=sum(check.ok for check in checks),
        total=len(checks),
        seconds=sum(check.seconds for check in checks),
        failures=tuple(
            f"{one.id}: {one.observed} ({one.reason}; {one.remedy})" for one in verdict.findings
        ),
        checks=checks,
    )


def _versions(
    fleet: Iterable[FleetRow], newest: Mapping[tuple[str, str], Result]
) -> Iterator[Version]:
    """What differs between hosts that should be alike stands side by side."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in fleet:
        pairs = [("GPU", row.gpu), ("driver", row.driver), ("image tag", row.tag)]
        pairs += [("image", row.image)]
        pairs += [("model " + model.partition("@")[0], model.rpartition("@")[2])
                  for model in row.models]  # fmt: skip
        result = newest.get((row.host, row.service))
        if result:
            version = f"{result.generator.name} {result.generator.version or ''}".strip()
            pairs += [("vLLM", result.vllm), ("load generator", version)]
        for what, value in pairs:
            if value is not None:
                found.setdefault((what, value), {})[row.host] = None
    order = {"GPU": 0, "driver": 1, "vLLM": 2, "image tag": 3, "image": 4}
    for what, value in sorted(found, key=lambda key: (order.get(key[0], 5), *key)):
        yield Version(what, value, tuple(sorted(found[what, value], key=natural)))
