"""What is wrong with the fleet, the heaviest first; what several hosts have is one finding."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from sparkwright.checks.configuration.parts import Memory
from sparkwright.extras.report.contents import FleetRow, SmokeRow
from sparkwright.findings.finding import Finding, Severity
from sparkwright.results.page import Weighed, Weight
from sparkwright.text.short import natural
from sparkwright.text.visible import cut

#: What a service's state means, where it is not well.
_STATES = {
    "failed": "does not serve as planned",
    "left alone": "was left alone",
    "not deployed": "is not deployed",
    "unknown": "was deployed, and not tested",
    "reverted": "went back to the release before",
    "taken back": "was taken back to the release before",
    "left": "was left as it was",
}
#: Characters of a reason.
_REASON = 200
_DOWN = ("failed", "left alone", "not deployed", "unknown")


def weighed(
    fleet: Iterable[FleetRow],
    smoke: Iterable[SmokeRow],
    measured: Iterable[Weighed],
    memory: Mapping[str, Memory],
    watched: Iterable[tuple[dt.datetime, Finding]],
    problems: Iterable[Finding],
    *,
    run: dt.datetime | None,
) -> tuple[Weighed, ...]:
    """Everything, heaviest first, equal findings of several hosts as one.

    Args:
        measured: what other extras found.
        watched: what findings were reported, and when.
        run: when the last run was.
    """
    rows = list(fleet)
    reasons = {(row.host, row.service): row.reason or "" for row in rows}
    found = [finding for row in rows for finding in _state(row, run)]
    for tested in smoke:
        found += _smoke(tested, reasons.get((tested.host, tested.service), ""), run)
    found += measured
    found += [
        Weighed(
            Weight.BELOW_CARD, (host,), None,
            f"the plan needs {-budget.free_gib:.1f} GiB more memory than there is",
        )
        for host, budget in memory.items()
        if budget.free_gib is not None and budget.free_gib < 0
    ]  # fmt: skip
    found += [_reported(finding, when) for when, finding in watched if finding.silenced is None]
    found += [
        Weighed(Weight.FILE, (), None, f"{one.subject.place} can't be read: {one.observed}",
                more=(f"{one.remedy}.",))
        for one in problems
    ]  # fmt: skip
    return tuple(_folded(found))


def _state(row: FleetRow, run: dt.datetime | None) -> Iterator[Weighed]:
    if row.state in _STATES:
        weight = Weight.DOWN if row.state in _DOWN else Weight.WRONG
        # All of it stands in the table of every host.
        why = f": {cut(' '.join(row.reason.split()), _REASON)}" if row.reason else ""
        seen = run if row.state != "not deployed" else None
        yield Weighed(weight, (row.host,), row.service, f"{_STATES[row.state]}{why}", seen=seen)


def _smoke(row: SmokeRow, reason: str, run: dt.datetime | None) -> Iterator[Weighed]:
    new = tuple(failure for failure in row.failures if failure not in reason)
    if new:
        what = f"fails {row.total - row.passed} of {row.total} checks: {new[0]}"
        yield Weighed(Weight.WRONG, (row.host,), row.service, what, seen=run, more=new[1:])


def _reported(finding: Finding, when: dt.datetime) -> Weighed:
    weight = Weight.WRONG if finding.severity is Severity.ERROR else Weight.WARNING
    hosts = (finding.subject.host,) if finding.subject.host else ()
    more = tuple(f"{text}." for text in (finding.reason, finding.remedy) if text)
    what = f"{finding.id}: {finding.observed}" if finding.observed else finding.id
    return Weighed(weight, hosts, finding.subject.service, what, seen=when, more=more)


def _folded(found: Iterable[Weighed]) -> Iterator[Weighed]:
    """Equal findings of several hosts as one; their shares as from the least to the most."""

    def kind(finding: Weighed) -> tuple[int, str, str]:
        return finding.weight, finding.service or "", finding.what

    folded = []
    for _, group in groupby(sorted(found, key=kind), key=kind):
        alike = list(group)
        hosts = {host for finding in alike for host in finding.hosts}
        shares = [share for one in alike for share in (one.low, one.high) if share is not None]
        folded.append(
            replace(
                alike[0],
                hosts=tuple(sorted(hosts, key=natural)),
                low=min(shares, default=None),
                high=max(shares, default=None),
                began=min((one.began for one in alike if one.began), default=None),
                seen=min((one.seen for one in alike if one.seen), default=None),
            )
        )
    # Within a weight what lost most comes first.
    yield from sorted(folded, key=lambda one: (one.weight, -(one.high or 0), -len(one.hosts)))
