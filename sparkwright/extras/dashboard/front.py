"""First part of the page: the most severe finding, every finding, and the fleet, with one row for
equal hosts.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.checks.configuration.parts import Memory
from sparkwright.extras.dashboard.contents import FleetRow, Page
from sparkwright.findings.render import count
from sparkwright.results.page import Weighed, Weight
from sparkwright.text.short import hosts_in_short, natural

#: Days after which a status of the fleet is old, and days after which a measurement is old.
_LOOK, _MEASUREMENT = 1, 7


def front(page: Page) -> str:
    """Summary in a single line: the first finding and its host, or the absence of findings."""
    if page.findings:
        first, *others = page.findings
        more = f"; and {count(len(others), 'finding')} more" if others else ""
        return f"{line(first, page.made)}{more}"
    if not page.fleet:
        return "There is nothing to show: no run, no results."
    looked = f", as of {ago(page.last_run, page.made)}" if page.last_run else ""
    hosts = len({row.host for row in page.fleet})
    services = count(len(page.fleet), "service")
    planned = f"{services} of {count(hosts, 'host')}: as planned"
    return f"{planned}, and no service is slower than its card{looked}"


def line(finding: Weighed, now: dt.datetime) -> str:
    """Line such as ``spark-2: qwen36: 3 of 7 figures are worse than the card's [old: 9 days]``."""
    hosts = hosts_in_short(finding.hosts)
    if len(finding.hosts) > 1:
        hosts = f"{len(finding.hosts)} hosts ({hosts})"
    old = age_mark(finding.seen, now, measured=finding.weight is Weight.BELOW_CARD)
    text = finding.problem + (f" [{old}]" if old else "")
    return ": ".join(filter(None, (hosts, finding.service, text)))


def ago(when: dt.datetime, now: dt.datetime) -> str:
    """Age such as ``2 days ago``; ``just now`` below a minute, or for a clock that runs ahead."""
    span = _span((now - when).total_seconds())
    return f"{span} ago" if span else "just now"


def _span(seconds: float) -> str:
    """A span of time in its largest unit; empty below a minute."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return count(int(seconds // size), unit)
    return ""


def age_mark(when: dt.datetime | None, now: dt.datetime, *, measured: bool) -> str:
    """Mark of outdated information, such as ``old: 9 days``; otherwise an empty text."""
    age = (now - when).total_seconds() if when else 0
    return f"old: {_span(age)}" if age >= 86400 * (_MEASUREMENT if measured else _LOOK) else ""


def bad_state(row: FleetRow) -> str:
    """State of a service with a finding; for a serving service, also a hint to Findings."""
    return row.state + ", see Findings" * row.state.startswith(("serving", "measured"))


def groups(fleet: Sequence[FleetRow]) -> list[list[FleetRow]]:
    """Group hosts that are equal apart from their speed; groups with findings come first."""
    alike: dict[object, list[FleetRow]] = {}
    for row in fleet:
        same = replace(row, host="", address=None, decode=None, first_token=None, measured=None)
        alike.setdefault((same, row.measured is None), []).append(row)
    return sorted(alike.values(), key=lambda rows: (rows[0].well, natural(rows[0].host)))


def memories(memory: Mapping[str, Memory]) -> list[tuple[list[str], Memory]]:
    """Group the hosts with equal memory budgets."""
    hosts: dict[Memory, list[str]] = {}
    for host, budget in memory.items():
        hosts.setdefault(budget, []).append(host)
    return [(names, budget) for budget, names in hosts.items()]
