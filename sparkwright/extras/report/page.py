"""The page's contents, made from what was read: judged, sorted, and the same for the same input."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.smoke.result import Smoke
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.extras.report.contents import FleetRow, Page, SmokeRow, Version
from sparkwright.extras.report.findings import weighed
from sparkwright.extras.report.inputs import LastRun, Reported, Switch
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult
from sparkwright.results.page import MeasuredService, Section, Weight
from sparkwright.results.run import Row, ServiceRow, image_in_short, state
from sparkwright.text.short import natural

#: States of a service that is as planned.
_WELL = ("serving", "serving, changed", "planned", "maintenance", "sleeps")


def page_of(
    *,
    made: dt.datetime,
    last_run: LastRun | None = None,
    history: Sequence[Switch] = (),
    deep: Sequence[DeepVerdict] = (),
    planned: Mapping[str, Sequence[str]] | None = None,
    memory: Mapping[str, Memory] | None = None,
    problems: Sequence[Finding] = (),
    reported: Reported | None = None,
    sections: Sequence[Section] = (),
) -> Page:
    """Judge and arrange what was read.

    Args:
        deep: the deep smoke test's verdicts: shown instead of a run's where they are of the same
            release.
        reported: what `sparkwright status` found last.
        planned: host -> services, where an inventory was given: only those hosts are shown.
        sections: what other extras add; of the same hosts.
    """
    rows = last_run.hosts if last_run else ()
    if planned is not None:
        rows = tuple(row for row in rows if row.host in planned)
    problems = [*(problem for section in sections for problem in section.problems), *problems]
    measured = {key: service for section in sections for key, service in section.services.items()}
    dry = last_run.dry if last_run else False
    fleet = sorted(
        _fleet(rows, measured, planned or {}, dry=dry),
        key=lambda row: (natural(row.host), row.service),
    )
    smoke = tuple(sorted(_smoke(rows, deep), key=lambda row: (natural(row.host), row.service)))
    findings = weighed(
        fleet, smoke, [finding for section in sections for finding in section.findings],
        memory or {}, _reported(rows, last_run, reported, planned), problems,
        run=last_run.when if last_run else None,
    )  # fmt: skip
    ill = {
        (host, finding.service)
        for finding in findings if finding.weight < Weight.WARNING
        for host in finding.hosts
    }  # fmt: skip
    return Page(
        made=made,
        last_run=last_run.when if last_run else None,
        dry=dry,
        fleet=tuple(
            replace(row, well=row.well and not ill & {(row.host, row.service), (row.host, None)})
            for row in fleet
        ),
        memory=dict(sorted((memory or {}).items(), key=lambda item: natural(item[0]))),
        versions=tuple(_versions(fleet, measured)),
        checks=tuple(dict.fromkeys(name for row in smoke for name in row.checks)),
        smoke=smoke,
        history=tuple(
            switch
            for switch in sorted(history, key=lambda switch: switch.when, reverse=True)
            if planned is None or switch.host in planned
        ),
        problems=tuple(problems),
        findings=findings,
        sections=tuple(sections),
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
        for finding in reported.findings:
            if planned is None or finding.subject.host in (None, *planned):
                yield reported.when, finding


def _fleet(
    rows: Iterable[Row],
    measured: Mapping[tuple[str, str], MeasuredService],
    planned: Mapping[str, Sequence[str]],
    *,
    dry: bool,
) -> Iterator[FleetRow]:
    shown = {(row.host, service.name) for row in rows for service in row.services}
    for row in rows:
        for service in row.services:
            yield _of_run(row, service, measured.get((row.host, service.name)), dry=dry)
    for host, name in measured.keys() - shown:
        result = measured[host, name]
        yield FleetRow(
            host, name, "measured only", well=True, gpu=result.gpu, driver=result.driver,
            release=result.release, tag=result.tag, models=_models(result.models),
            decode=result.decode, first_token=result.first_token, measured=result.when,
        )  # fmt: skip
    for host, services in planned.items():
        for name in services:
            if (host, name) not in {*shown, *measured}:
                yield FleetRow(host, name, "not deployed", well=False)


def _of_run(
    row: Row, service: ServiceRow, result: MeasuredService | None, *, dry: bool
) -> FleetRow:
    name = state(row, service, dry)
    # Of a host that was left alone it is not known what runs there.
    known = name != "left alone"
    return FleetRow(
        host=row.host,
        service=service.name,
        state=name,
        well=name in _WELL,
        gpu=row.gpu or (result.gpu if result else None),
        driver=row.driver or (result.driver if result else None),
        address=service.address if known else None,
        release=service.release if known else None,
        tag=service.tag if known else None,
        image=image_in_short(service.image) if known else None,
        models=_models(service.models) if known else (),
        reason=row.refused,
        decode=result.decode if result else None,
        first_token=result.first_token if result else None,
        measured=result.when if result else None,
    )


def _models(models: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{repository}@{commit[:12]}" for repository, commit in models.items())


def _smoke(rows: Iterable[Row], deep: Sequence[DeepVerdict]) -> Iterator[SmokeRow]:
    verdicts = {(verdict.host, verdict.service, verdict.release): verdict for verdict in deep}
    for row in rows:
        for service in row.services:
            verdict = verdicts.get((row.host, service.name, service.release))
            if smoke := _short(verdict) if verdict else service.smoke:
                yield SmokeRow(
                    row.host, service.name, {check.name: check for check in smoke.checks},
                    smoke.passed, smoke.total, smoke.seconds, smoke.failures,
                )  # fmt: skip


def _short(verdict: DeepVerdict) -> Smoke:
    """A deep verdict without what was skipped, and with what failures mean."""
    checks = tuple(
        CheckResult(check.name, check.verdict == "passed", check.seconds, check.detail)
        for check in verdict.checks
        if check.verdict != "skipped"
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
    fleet: Iterable[FleetRow], measured: Mapping[tuple[str, str], MeasuredService]
) -> Iterator[Version]:
    """What differs between hosts that should be alike stands side by side."""
    hosts: dict[tuple[str, str], dict[str, None]] = {}
    for row in fleet:
        result = measured.get((row.host, row.service))
        pairs = [
            ("GPU", row.gpu), ("driver", row.driver), ("image tag", row.tag), ("image", row.image),
            *(("model " + model.partition("@")[0], model.rpartition("@")[2])
              for model in row.models),
            *(result.versions.items() if result else ()),
        ]  # fmt: skip
        for what, value in pairs:
            if value is not None:
                hosts.setdefault((what, value), {})[row.host] = None
    order = {"GPU": 0, "driver": 1, "vLLM": 2, "image tag": 3, "image": 4}
    for what, value in sorted(hosts, key=lambda key: (order.get(key[0], 5), *key)):
        yield Version(what, value, tuple(sorted(hosts[what, value], key=natural)))
