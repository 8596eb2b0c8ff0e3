"""What is wrong with the fleet, the heaviest first; what several hosts have is one finding."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from sparkwright.checks.configuration.parts import Memory
from sparkwright.extras.bench.history import Regression
from sparkwright.extras.bench.measures import Name
from sparkwright.extras.report.contents import Bench, FleetRow, SmokeRow, Weighed, Weight, natural
from sparkwright.extras.report.findings import findings, likely
from sparkwright.extras.report.words import count, finding_words
from sparkwright.findings.finding import Finding, Severity
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
#: What a worse measure means to whoever waits for an answer; {} is the share in percent.
_SLOWER: dict[Name, str] = {
    "decode": "answers {} % slower",
    "decode_total": "answers {} % slower under load",
    "tpot": "takes {} % longer for each token",
    "ttft": "begins to answer {} % later",
    "ttft_p95": "begins the slowest answers {} % later",
    "prefill": "reads prompts {} % slower",
    "acceptance": "has {} % fewer drafted tokens accepted",
    "acceptance_length": "has {} % fewer tokens per step",
}


def weighed(
    fleet: Iterable[FleetRow],
    smoke: Iterable[SmokeRow],
    benches: Iterable[Bench],
    memory: Mapping[str, Memory],
    watched: Iterable[tuple[dt.datetime, Finding]],
    problems: Iterable[Finding],
    *,
    run: dt.datetime | None,
) -> tuple[Weighed, ...]:
    """Everything, heaviest first, equal findings of several hosts as one.

    Args:
        watched: what findings were reported, and when.
        run: when the last run was.
    """
    rows = list(fleet)
    found = [one for row in rows for one in _state(row, run)]
    told = {(row.host, row.service): row.reason or "" for row in rows}
    for tested in smoke:
        found += _smoke(tested, told.get((tested.host, tested.service), ""), run)
    found += [one for bench in benches for one in _speed(bench)]
    found += [
        Weighed(
            Weight.BELOW_CARD, (host,), None,
            f"the plan needs {-one.free_gib:.1f} GiB more memory than there is",
        )
        for host, one in memory.items()
        if one.free_gib is not None and one.free_gib < 0
    ]  # fmt: skip
    found += [_reported(one, when) for when, one in watched if one.silenced is None]
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


def _smoke(row: SmokeRow, told: str, run: dt.datetime | None) -> Iterator[Weighed]:
    new = [why for why in row.failures if why not in told]
    if new:
        what = f"fails {row.total - row.passed} of {row.total} checks: {new[0]}"
        yield Weighed(
            Weight.WRONG, (row.host,), row.service, what, seen=run, more=tuple(new[1:])
        )  # fmt: skip


def _reported(one: Finding, when: dt.datetime) -> Weighed:
    weight = Weight.WRONG if one.severity is Severity.ERROR else Weight.WARNING
    hosts = (one.subject.host,) if one.subject.host else ()
    more = [f"{one.reason}." if one.reason else "", f"{one.remedy}." if one.remedy else ""]
    said = f"{one.id}: {one.observed}" if one.observed else one.id
    return Weighed(
        weight, hosts, one.subject.service, said, seen=when, more=tuple(filter(None, more))
    )


def _speed(bench: Bench) -> Iterator[Weighed]:
    result = bench.result
    causes = [f"Perhaps {one.what}. Look: {one.look}." for one, _ in likely(bench)[:2]]
    words = [f"{finding_words(one)}." for one in findings(bench)]
    base = Weighed(Weight.SLOW, (result.host,), result.service, "", seen=result.when)
    if bench.errors:
        failed = f"{count(bench.errors, 'request')} failed while it was measured"
        yield replace(base, weight=Weight.WRONG, what=failed)
    if bench.regressions:
        name = bench.regressions[0].measure
        for measure in _SLOWER:  # in the order in which they matter
            if any(one.measure == measure for one in bench.regressions):
                name = measure
                break
        worse = [one for one in bench.regressions if one.measure == name]
        share = statistics.median(abs(one.change) for one in worse)
        suspects, began = _suspects(worse)
        since = f" since {_changed(suspects[0])}" if suspects else ""
        others = [f"Changed with it: {', '.join(map(_arrow, suspects[1:]))}."]
        yield replace(
            base, what=_SLOWER[name] + since, low=share, high=share, began=began,
            more=(*(others if suspects[1:] else []), *causes, *words[:2]),
        )  # fmt: skip
    elif bench.worse:
        what = f"{bench.worse} of {bench.compared} figures are worse than the card's"
        yield replace(base, weight=Weight.BELOW_CARD, what=what, more=(*causes, *words[:2]))


def _suspects(worse: Sequence[Regression]) -> tuple[tuple[str, ...], dt.datetime]:
    """What changed when most of them began, and when that was."""
    began = statistics.mode(one.began for one in worse)
    return next(one.since for one in worse if one.began == began), began


def _changed(change: str) -> str:
    """``driver 1 -> 2`` as ``the driver changed 1 → 2``."""
    what, _, values = _arrow(change).partition(" → ")
    name, _, before = what.rpartition(" ")
    return f"the {name} changed {before} → {values}"


def _arrow(change: str) -> str:
    return change.replace(" -> ", " → ")


def _folded(found: Iterable[Weighed]) -> Iterator[Weighed]:
    """Equal findings of several hosts as one; their shares as from the least to the most."""

    def kind(one: Weighed) -> tuple[int, str, str]:
        return one.weight, one.service or "", one.what

    # Within a weight what lost most comes first.
    made = []
    for _, alike in groupby(sorted(found, key=kind), key=kind):
        each = list(alike)
        hosts = dict.fromkeys(host for one in each for host in one.hosts)
        shares = [share for one in each for share in (one.low, one.high) if share is not None]
        made.append(
            replace(
                each[0],
                hosts=tuple(sorted(hosts, key=natural)),
                low=min(shares) if shares else None,
                high=max(shares) if shares else None,
                began=min((one.began for one in each if one.began), default=None),
                seen=min((one.seen for one in each if one.seen), default=None),
            )
        )
    yield from sorted(made, key=lambda one: (one.weight, -(one.high or 0), -len(one.hosts)))
