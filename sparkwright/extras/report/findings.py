"""What is wrong with the fleet, the heaviest first; what several hosts have is one finding."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from sparkwright.extras.report.contents import Page
from sparkwright.findings.finding import Finding, Severity
from sparkwright.results.page import Weighed, Weight
from sparkwright.text.short import natural
from sparkwright.text.visible import cut

#: What a service's state means, where it is not well, and how much that weighs.
_STATES = {
    "failed": (Weight.DOWN, "does not serve as planned"),
    "left alone": (Weight.DOWN, "was left alone"),
    "not deployed": (Weight.DOWN, "is not deployed"),
    "unknown": (Weight.DOWN, "was deployed, and not tested"),
    "reverted": (Weight.WRONG, "went back to the release before"),
    "taken back": (Weight.WRONG, "was taken back to the release before"),
    "left": (Weight.WRONG, "was left as it was"),
}
#: Characters of a reason.
_REASON = 200


def weighed(page: Page, watched: Iterable[tuple[dt.datetime, Finding]]) -> tuple[Weighed, ...]:
    """Everything, heaviest first, equal findings of several hosts as one.

    Args:
        watched: what findings were reported, and when.
    """
    found = [*_states(page), *_smoke(page)]
    found += [finding for section in page.sections for finding in section.findings]
    for host, budget in page.memory.items():
        if budget.free_gib is not None and budget.free_gib < 0:
            what = f"the plan needs {-budget.free_gib:.1f} GiB more memory than there is"
            found.append(Weighed(Weight.BELOW_CARD, (host,), None, what))
    found += [_reported(finding, when) for when, finding in watched if finding.silenced is None]
    for problem in page.problems:
        what = f"{problem.subject.place} can't be read: {problem.observed}"
        found.append(Weighed(Weight.FILE, (), None, what, more=(f"{problem.remedy}.",)))
    return tuple(_folded(found))


def _states(page: Page) -> Iterator[Weighed]:
    for row in page.fleet:
        if row.state in _STATES:
            weight, meaning = _STATES[row.state]
            # All of it stands in the table of every host.
            why = f": {cut(' '.join(row.reason.split()), _REASON)}" if row.reason else ""
            seen = page.last_run if row.state != "not deployed" else None
            yield Weighed(weight, (row.host,), row.service, f"{meaning}{why}", seen=seen)


def _smoke(page: Page) -> Iterator[Weighed]:
    reasons = {(row.host, row.service): row.reason or "" for row in page.fleet}
    for row in page.smoke:
        reason = reasons.get((row.host, row.service), "")
        new = tuple(failure for failure in row.failures if failure not in reason)
        if new:
            what = f"fails {row.total - row.passed} of {row.total} checks: {new[0]}"
            seen = page.last_run
            yield Weighed(Weight.WRONG, (row.host,), row.service, what, seen=seen, more=new[1:])


def _reported(finding: Finding, when: dt.datetime) -> Weighed:
    weight = Weight.WRONG if finding.severity is Severity.ERROR else Weight.WARNING
    hosts = (finding.subject.host,) if finding.subject.host else ()
    more = tuple(f"{text}." for text in (finding.reason, finding.remedy) if text)
    what = f"{finding.id}: {finding.observed}" if finding.observed else finding.id
    return Weighed(weight, hosts, finding.subject.service, what, seen=when, more=more)


def _folded(found: Iterable[Weighed]) -> list[Weighed]:
    """Equal findings of several hosts as one; their shares as from the least to the most."""

    def kind(finding: Weighed) -> tuple[int, str, str]:
        return finding.weight, finding.service or "", finding.what

    folded = []
    for _, group in groupby(sorted(found, key=kind), key=kind):
        alike = list(group)
        hosts = {host for finding in alike for host in finding.hosts}
        folded.append(
            replace(
                alike[0],
                hosts=tuple(sorted(hosts, key=natural)),
                low=min((one.low for one in alike if one.low is not None), default=None),
                high=max((one.high for one in alike if one.high is not None), default=None),
                began=min((one.began for one in alike if one.began), default=None),
                seen=min((one.seen for one in alike if one.seen), default=None),
            )
        )
    # Within a weight what lost most comes first.
    return sorted(folded, key=lambda one: (one.weight, -(one.high or 0), -len(one.hosts)))
