"""The page's contents, from the files and answers: judged, sorted, and equal for equal input.

Findings come first, the most severe first; equal findings of several hosts are one finding.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.smoke.result import Smoke
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.extras.dashboard import contents
from sparkwright.extras.dashboard.front import front
from sparkwright.findings.finding import Finding, Severity
from sparkwright.host.service import CheckResult
from sparkwright.results.page import MeasuredService, Section, Weighed, Weight
from sparkwright.results.run_summary import Row, image_in_short, state
from sparkwright.text import shipped_yaml, short
from sparkwright.text.visible import cut

#: States of a service as planned.
_WELL = ("serving", "serving, changed", "planned", "maintenance", "sleeps", "measured only")
#: Order of versioned parts; programs and models follow.
_ORDER = ("GPU", "driver", "image tag", "image")
#: Meanings and weights of a service's faulty states.
_STATES = shipped_yaml.beside(__file__, "states.yaml")
#: Largest number of characters of a reason.
_REASON = 200
#: Values by host and service.
_Measured = Mapping[tuple[str, str], MeasuredService]


def page_of(
    *,
    made: dt.datetime,
    last_run: contents.LastRun | None = None,
    status: contents.Status | None = None,
    deep: Sequence[DeepVerdict] = (),
    planned: Mapping[str, Sequence[str]] | None = None,
    memory: Mapping[str, Memory] | None = None,
    problems: Sequence[Finding] = (),
    sections: Sequence[Section] = (),
) -> contents.Page:
    """Judge and arrange the stored results.

    Args:
        deep: verdicts of the deep smoke test, which replace a run's verdicts of the same release.
        planned: host -> services, if an inventory was given: only these hosts are shown.
        sections: sections of other extras, for the same hosts.
    """
    status = status or contents.Status()
    rows, dry = (last_run.hosts, last_run.dry) if last_run else ((), False)
    rows = tuple(row for row in rows if planned is None or row.host in planned)
    measured = {key: service for section in sections for key, service in section.services.items()}
    fleet = sorted(_fleet(rows, measured, planned or {}, dry=dry), key=_order)
    smoke = sorted(_smoke(rows, deep), key=_order)
    page = contents.Page(
        made=made,
        last_run=last_run.when if last_run else None,
        dry=dry,
        fleet=tuple(fleet),
        memory=dict(sorted((memory or {}).items(), key=lambda item: short.natural(item[0]))),
        versions=tuple(_versions(fleet, measured)),
        checks=tuple(dict.fromkeys(name for row in smoke for name in row.checks)),
        smoke=tuple(smoke),
        history=tuple(
            item for item in reversed(status.history) if planned is None or item.host in planned
        ),
        problems=(*(problem for section in sections for problem in section.problems), *problems),
        sections=tuple(sections),
    )
    reported = [
        _reported(finding.on(row.host), page.last_run)
        for row in rows
        for finding in row.findings
        if not finding.stops and finding.silenced is None
    ]
    reported += [
        _reported(finding, status.when)
        for finding in status.findings
        if finding.silenced is None
        and (planned is None or finding.subject.host in (None, *planned))
    ]
    page = replace(page, findings=_folded([*_weighed(page), *reported]))
    ill = {
        (host, finding.service)
        for finding in page.findings if finding.weight < Weight.WARNING
        for host in finding.hosts
    }  # fmt: skip
    well = (
        replace(row, well=row.well and not ill & {(row.host, row.service), (row.host, None)})
        for row in page.fleet
    )
    return replace(page, fleet=tuple(well), front=front(page))


def _order(row: contents.FleetRow | contents.SmokeRow) -> tuple[object, str]:
    return short.natural(row.host), row.service


def _fleet(
    rows: Iterable[Row], measured: _Measured, planned: Mapping[str, Sequence[str]], *, dry: bool
) -> Iterator[contents.FleetRow]:
    shown = {(row.host, service.name): (row, service) for row in rows for service in row.services}
    expected = [(host, name) for host, names in planned.items() for name in names]
    for key in dict.fromkeys([*shown, *measured, *expected]):
        row, service = shown.get(key, (None, None))
        result = measured.get(key)
        condition = "measured only" if result else "not deployed"
        if row and service:
            condition = state(row, service, dry)
        # The running release of a host outside the last run is unknown.
        running = service if condition != "left alone" else None
        deployed = running or (None if service else result)
        models = deployed.models if deployed else {}
        facts: dict[str, Any] = {}
        for source, names in (
            (result, ("gpu", "driver", "decode", "first_token")), (row, ("gpu", "driver")),
            (deployed, ("release", "tag")), (running, ("address",)),
        ):  # fmt: skip
            facts |= {name: value for name in names if (value := getattr(source, name, None))}
        yield contents.FleetRow(
            *key, condition, well=condition in _WELL,
            image=image_in_short(running.image) if running else None,
            models=tuple(f"{repository}@{commit[:12]}" for repository, commit in models.items()),
            reason=row.refused if row else None, measured=result.when if result else None, **facts,
        )  # fmt: skip


def _smoke(rows: Iterable[Row], deep: Sequence[DeepVerdict]) -> Iterator[contents.SmokeRow]:
    verdicts = {(verdict.host, verdict.service, verdict.release): verdict for verdict in deep}
    for row in rows:
        for service in row.services:
            verdict = verdicts.get((row.host, service.name, service.release))
            if smoke := _short(verdict) if verdict else service.smoke:
                yield contents.SmokeRow(
                    row.host, service.name, {check.name: check for check in smoke.checks},
                    smoke.passed, smoke.total, smoke.seconds, smoke.failures,
                )  # fmt: skip


def _short(verdict: DeepVerdict) -> Smoke:
    """A deep verdict without its skipped checks, and with the meanings of its failures."""
    checks = tuple(
        CheckResult(check.name, check.verdict == "passed", check.seconds, check.detail)
        for check in verdict.checks
        if check.verdict != "skipped"
    )
    failures = tuple(
        f"{finding.id}: {finding.observed} ({finding.reason}; {finding.remedy})"
        for finding in verdict.findings
    )
    passed, seconds = sum(check.ok for check in checks), sum(check.seconds for check in checks)
    return Smoke(passed, len(checks), seconds, failures, checks)


def _versions(
    fleet: Iterable[contents.FleetRow], measured: _Measured
) -> Iterator[contents.Version]:
    """Versions and their hosts side by side: unexpected differences between hosts stand out."""
    hosts: dict[tuple[str, str], set[str]] = {}
    for row in fleet:
        result = measured.get((row.host, row.service))
        versions = dict(zip(_ORDER, (row.gpu, row.driver, row.tag, row.image), strict=True))
        versions |= result.versions if result else {}
        models = (model.rpartition("@") for model in row.models)
        versions |= {f"model {name}": at for name, _, at in models}
        for component, version in versions.items():
            if version is not None:
                hosts.setdefault((component, version), set()).add(row.host)

    def order(key: tuple[str, str]) -> tuple[int, str, str]:
        return (*_ORDER, key[0]).index(key[0]), *key

    for key in sorted(hosts, key=order):
        yield contents.Version(*key, tuple(sorted(hosts[key], key=short.natural)))


def _weighed(page: contents.Page) -> Iterator[Weighed]:
    """Findings of states, smoke tests, sections, memory and files."""
    yield from _states(page)
    yield from _smoke_findings(page)
    for section in page.sections:
        yield from section.findings
    for host, budget in page.memory.items():
        if budget.free_gib is not None and budget.free_gib < 0:
            text = f"the plan needs {-budget.free_gib:.1f} GiB more memory than the host has"
            yield Weighed(Weight.BELOW_CARD, (host,), None, text)
    for problem in page.problems:
        text = f"{problem.subject.place} can't be read: {problem.observed}"
        yield Weighed(Weight.FILE, (), None, text, more=(f"{problem.remedy}.",))


def _states(page: contents.Page) -> Iterator[Weighed]:
    for row in page.fleet:
        if row.state in _STATES:
            weight, text = _STATES[row.state]
            if row.reason:  # the hosts' tables have the whole reasons
                text = f"{text}: {cut(' '.join(row.reason.split()), _REASON)}"
            when = page.last_run if row.state != "not deployed" else None
            yield Weighed(Weight[weight], (row.host,), row.service, text, seen=when)


def _smoke_findings(page: contents.Page) -> Iterator[Weighed]:
    reasons = {(row.host, row.service): row.reason or "" for row in page.fleet}
    for row in page.smoke:
        new = tuple(each for each in row.failures if each not in reasons[row.host, row.service])
        if new:
            text = f"fails {row.total - row.passed} of {row.total} checks: {new[0]}"
            yield Weighed(Weight.WRONG, (row.host,), row.service, text, page.last_run, new[1:])


def _reported(finding: Finding, when: dt.datetime | None) -> Weighed:
    weight = Weight.WRONG if finding.severity is Severity.ERROR else Weight.WARNING
    hosts = (finding.subject.host,) if finding.subject.host else ()
    more = tuple(f"{line}." for line in (finding.reason, finding.remedy) if line)
    text = f"{finding.id}: {finding.observed}" if finding.observed else finding.id
    return Weighed(weight, hosts, finding.subject.service, text, seen=when, more=more)


def _folded(findings: Iterable[Weighed]) -> tuple[Weighed, ...]:
    """All findings, the most severe first; equal findings of several hosts are one finding."""

    def kind(finding: Weighed) -> tuple[int, str, str]:
        return finding.weight, finding.service or "", finding.problem

    folded = []
    for _, group in groupby(sorted(findings, key=kind), key=kind):
        alike = list(group)
        hosts = {host for finding in alike for host in finding.hosts}
        folded.append(
            replace(
                alike[0],
                hosts=tuple(sorted(hosts, key=short.natural)),
                seen=min((item.seen for item in alike if item.seen), default=None),
            )
        )
    return tuple(sorted(folded, key=lambda item: (item.weight, -len(item.hosts))))
