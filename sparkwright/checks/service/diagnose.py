"""Symptoms to reasons to remedies: everything the cards' troubleshooting knows, as checks.

Pure: facts come from sparkwright/host/doctor.py. Each check stands alone; a new one is a few lines
in the module of its kind, and a test that provokes it. What the watch judges too has no code here:
its findings are named by the watch's evaluation, and reason, remedy and source are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sparkwright.checks.service import engine, hardware, host, logs, ranks, service, watched
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.evaluated import evaluated
from sparkwright.checks.service.evaluated import watched as seen_by_watch
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Finding, Severity, errors, errors_first
from sparkwright.findings.render import Paint, counts, headline, text
from sparkwright.host.watch.state import WatchReport
from sparkwright.text.screen import folded

#: Every check, the exact ones before those that are vague beside them.
CHECKS: tuple[Check, ...] = (
    *logs.CHECKS,
    *service.CHECKS,
    *ranks.CHECKS,
    *engine.CHECKS,
    *hardware.CHECKS,
    *host.CHECKS,
    *watched.CHECKS,
)
_KNOWN = {check.id: check for check in CHECKS}
#: What preflight warns of and does no harm to what runs.
_HARMLESS = ("docker-user",)


def diagnose(name: str, seen: Facts) -> list[Finding]:
    """What is wrong with a host, errors first.

    What both the doctor and the watch find is reported once, by the doctor; a vague finding of a
    service is left out beside an exact error of the same service.
    """
    symptoms = [
        (check.id, symptom) for check in CHECKS if check.look for symptom in check.look(seen)
    ]
    symptoms += evaluated(seen)
    looked = {(id_, symptom.service) for id_, symptom in symptoms}
    symptoms += [
        (id_, symptom)
        for id_, symptom in seen_by_watch(seen.watch, seen.now)
        if (id_, symptom.service) not in looked
    ]
    found = [found_on(name, id_, symptom) for id_, symptom in symptoms]
    found += [finding for finding in seen.findings if finding.id not in _HARMLESS]
    exact = {one.subject.service for one in found if one.stops and not _vague(one)}
    return errors_first(one for one in found if one.subject.service not in exact or not _vague(one))


def diagnose_all(seen: Mapping[str, Facts]) -> dict[str, list[Finding]]:
    """What is wrong with every host, and between those that serve together."""
    found = {name: diagnose(name, facts) for name, facts in seen.items()}
    for name, id_, symptom in ranks.between(seen):
        found[name] = errors_first([*found[name], found_on(name, id_, symptom)])
    return found


def watch_findings(host: str, watch: WatchReport | None, now: float) -> list[Finding]:
    """What the watch on a host holds to be wrong, with reason and remedy, errors first."""
    return errors_first(found_on(host, id_, symptom) for id_, symptom in seen_by_watch(watch, now))


def known(id_: str) -> Check | None:
    """A check by its id; None for one that only another version knows."""
    return _KNOWN.get(id_)


def found_on(host: str, id_: str, symptom: Symptom) -> Finding:
    """The finding of a check on a host."""
    # A watch that is newer than this table may know more.
    check = known(id_) or Check(id_, Severity.WARNING, "", "", "the watch on the host")
    return check.finding(host, symptom)


def _vague(finding: Finding) -> bool:
    return finding.id in _KNOWN and _KNOWN[finding.id].vague


def _alike(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(one.on(None) for one in findings)


def render(found: Mapping[str, list[Finding]], paint: Paint = str) -> str:
    """The heaviest finding in a line; then every host's, those with errors first. Equal hosts are
    one."""
    ordered = sorted(found.items(), key=lambda one: -len(errors(one[1])))
    every = errors_first(one for _, findings in ordered for one in findings)
    alike = folded(ordered, _alike)
    return "\n".join([*([headline(every), ""] if every else []), *_each(alike, paint)])


def _each(found: Iterable[tuple[list[str], list[Finding]]], paint: Paint) -> Iterator[str]:
    yield from (
        f"{', '.join(hosts)}: {counts(findings)}\n"
        f"{text(findings, hosts=False, indent=2, paint=paint)}"
        if findings
        else f"{', '.join(hosts)}: nothing found"
        for hosts, findings in found
    )
