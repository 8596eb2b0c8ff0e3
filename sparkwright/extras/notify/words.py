"""A notice as text: a title, and a few lines however much was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkwright.extras.notify.said import Notice, Told
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import count, together
from sparkwright.text.lock_owner import age
from sparkwright.text.visible import visible

#: So many findings are told one by one, so many hosts and characters of each.
_LINES, _HOSTS, _LONGEST = 10, 6, 300


def title(notice: Notice) -> str:
    """``spark-1, spark-2: qwen36: wedge (and 2 more)``: the heaviest, and how many there are."""
    news = [*_folded((*notice.worse, *notice.began))]
    if news:
        first = _head(*news[0])
        more = len(news) - 1
    else:
        over = _over(notice.over)
        first, more = f"over: {over[0][0]}", len(over) - 1
    return visible(f"{first} (and {more} more)" if more else first, 120)


def body(notice: Notice, now: float) -> str:
    """Everything that is new, folded, with what to do."""
    over = [[f"{one} (after {age(now - since)})"] for one, since in _over(notice.over)]
    return "\n".join(
        [
            *_part("worse", [_lines(*one) for one in _folded(notice.worse)]),
            *_part("new", [_lines(*one) for one in _folded(notice.began)]),
            *_part("over", over),
        ]
    )


def _part(name: str, found: Sequence[Sequence[str]]) -> Iterable[str]:
    for first, *rest in found[:_LINES]:
        yield visible(f"{name}: {first}", _LONGEST)
        yield from (visible(line, _LONGEST) for line in rest)
    if more := found[_LINES:]:
        yield f"{name}: and {count(len(more), 'finding')} more: sparkwright status"


def _folded(findings: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    return list(together(findings).items())


def _named(hosts: Sequence[str]) -> str:
    if len(hosts) <= _HOSTS:
        return ", ".join(hosts)
    return f"{', '.join(hosts[: _HOSTS - 1])} and {len(hosts) - _HOSTS + 1} more hosts"


def _head(finding: Finding, hosts: Sequence[str]) -> str:
    return ": ".join(filter(None, (_named(hosts), finding.subject.service, finding.id)))


def _lines(finding: Finding, hosts: list[str]) -> list[str]:
    said = f" ({finding.observed})" if finding.observed else ""
    return [
        f"{finding.level}: {_head(finding, hosts)}{said}",
        f"    {finding.reason}",
        f"    -> {finding.remedy}",
    ]


def _over(told: Iterable[Told]) -> list[tuple[str, float]]:
    """Words and the earliest time of what ended, equal findings of several hosts as one."""
    found: dict[tuple[str | None, str], list[Told]] = {}
    for one in told:
        found.setdefault((one.service, one.id), []).append(one)
    return [
        (
            ": ".join(filter(None, (_named([one.host for one in each if one.host]), *name))),
            min(one.since for one in each),
        )
        for name, each in found.items()
    ]
