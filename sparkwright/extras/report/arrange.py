"""The page's contents, made from what was read: judged, sorted, and the same for the same input."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparkwright.catalog import Catalog
from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.smoke.result import Smoke
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.extras.bench.compare import compare
from sparkwright.extras.bench.history import regressions
from sparkwright.extras.bench.published import tables
from sparkwright.extras.bench.results import Result
from sparkwright.extras.report.contents import (
    Bench,
    FleetRow,
    Page,
    SmokeRow,
    Version,
    Weight,
    natural,
)
from sparkwright.extras.report.inputs import LastRun, Reported, Switch
from sparkwright.extras.report.weighed import weighed
from sparkwright.extras.report.words import one_stream
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult
from sparkwright.results.run import Row, ServiceRow, image_in_short, state

#: States of a service that is as planned.
_WELL = ("serving", "serving, changed", "planned", "maintenance", "sleeps")


def judged(found: Sequence[Result], catalog: Catalog) -> Bench:
    """The newest of a service's results, held against the cards and against the others.

    Args:
        found: at least one, the oldest first.
    """
    causes = [cause for group in catalog.causes.values() for cause in group.causes]
    newest = found[-1]
    cells = compare(newest, tables(newest, catalog), causes)
    return Bench(newest, cells, regressions(newest, found), len(found))


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
    reported: Reported | None = None,
) -> Page:
    """Judge and arrange what was read.

    Args:
        results: (host, service) -> results, the oldest first; the newest is shown, the others are
            its past.
        deep: the deep smoke test's verdicts: shown instead of a run's where they are of the same
            release.
        reported: what `sparkwright status` found last.
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
    found = weighed(
        fleet, smoke, benches, memory or {}, list(_reported(rows, last_run, reported, planned)),
        problems, run=last_run.when if last_run else None,
    )  # fmt: skip
    ill = {
        (host, one.service) for one in found if one.weight < Weight.WARNING for host in one.hosts
    }
    fleet = tuple(
        replace(row, well=row.well and not ill & {(row.host, row.service), (row.host, None)})
        for row in fleet
    )
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
        findings=found,
    )


def _reported(
    rows: Iterable[Row],
    last_run: LastRun | None,
    reported: Reported | None,
    planned: Mapping[str, Sequence[str]] | None,
) -> Iterator[tuple[dt.datetime, Finding]]:
    """Findings of the last run that did not stop it, and of the watch; each with its time."""
    if last_run:
        for row in rows:
            yield from ((last_run.when, one.on(row.host)) for one in row.findings if not one.stops)
    if reported:
        for one in reported.findings:
            if planned is None or one.subject.host in (None, *planned):
                yield reported.when, one


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
                *one_stream(result), result.when,
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
    decode, first_token = one_stream(measured) if measured else (None, None)
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
        decode=decode,
        first_token=first_token,
        measured=measured.when if measured else None,
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
