"""What is wrong now, as a notice may say it: words of ours, and figures.

What a host says may hold a log's line, and with it a key or a prompt. Of its words nothing passes
but figures in the forms that the watch writes, ids of known checks and names of planned services.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.checks.service.watch import reported
from sparkwright.findings.check import Check, Symptom
from sparkwright.findings.finding import Finding, Severity, Subject, errors_first
from sparkwright.host.release import HistoryEntry
from sparkwright.results.status import Deployment
from sparkwright.text.lock_owner import age

_SPAN = "[0-9]{1,6} (?:s|min|h|d)"
_FIGURES = re.compile(
    "|".join(
        (
            "[0-9]{1,6} restarts within an hour",
            "the unit has failed after [0-9]{1,6} restarts",
            f"/health says (?:nothing|[0-9]{{3}}) for {_SPAN}",
            f"[0-9]{{1,6}} requests run, and no token for {_SPAN}",
            f"KV cache full for {_SPAN}, [0-9]{{1,6}} requests wait",
            r"[0-9]{1,3}\.[0-9]% of [0-9]{1,12} drafted tokens accepted",
            "at [0-9]{1,4} of [0-9]{1,4} looks within ten minutes",
            "[0-9]{1,9} of [0-9]{1,9} GiB free(?:, full in about [0-9]{1,6} h)?",
            f"the watch has not looked for {_SPAN}",
        )
    )
)
_SERVICE = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_RELEASE = re.compile("[0-9a-f]{12}")
_SILENT = Finding(
    "host-silent", Severity.ERROR,
    reason="it could not be asked: it is off, its network is gone, or it refuses key or sudo",
    remedy="sparkwright status INVENTORY says what ssh said", source="sparkwright",
)  # fmt: skip
#: That no host could be asked at all.
UNANSWERED = replace(
    _SILENT,
    id="fleet-silent",
    reason="no host could be asked: the network is gone, or the plan can't be read",
)
_UNKNOWN = Check(
    "unknown", Severity.WARNING, reason="the watch of another version found it",
    remedy="sparkwright doctor INVENTORY", source="the watch on the host",
)  # fmt: skip
#: Seconds after a switch within which it is suspected first.
_RECENT = 86400.0


def current(
    deployments: Mapping[str, Deployment], silent: Iterable[str] = ()
) -> tuple[list[Finding], frozenset[str]]:
    """Everything that is wrong, errors first; and the hosts of which nothing is known now.

    Args:
        silent: hosts that did not answer.

    Of a host that somebody is at work on nothing is said: a switch stops services on purpose.
    """
    found = [replace(_SILENT, subject=Subject(host)) for host in silent]
    unknown = {one.subject.host or "" for one in found}
    for host, seen in deployments.items():
        if seen.lock or (seen.switch and seen.switch.step != "ended"):
            unknown.add(host)
        else:
            found += _of(host, seen)
            # Without a plan it is not known what must run.
            unknown |= set() if seen.plan_known else {host}
    return errors_first(found), frozenset(unknown)


def _of(host: str, seen: Deployment) -> Iterator[Finding]:
    told = set()
    for symptom in reported(seen.watch, seen.now):
        told.add(symptom.service)
        yield _bare(host, symptom, seen)
    for name in seen.planned:
        one = seen.services.get(name)
        if name not in {*told, *seen.sleeping} and (
            one is None or one.unit.get("ActiveState") == "inactive"
        ):
            yield _bare(host, Symptom("stopped", service=name), seen)


def _bare(host: str, symptom: Symptom, seen: Deployment) -> Finding:
    """A symptom's finding without a word of the host's."""
    # Without a plan the names of what was deployed are all there is.
    names = seen.planned if seen.plan_known else filter(_SERVICE.fullmatch, seen.services)
    service = symptom.service if symptom.service in names else None
    figures = _FIGURES.search(str(symptom.values.get("observed", "")))
    words = [figures[0]] if figures else []
    words += [suspect] if service and (suspect := _switched(service, seen)) else []
    bare = Symptom(host=host, service=service, severity=symptom.severity)
    finding = CHECKS.texts.get(symptom.check, _UNKNOWN).finding(bare)
    return replace(finding, observed=", ".join(words))


def _switched(service: str, seen: Deployment) -> str | None:
    """The last switch of a service, where it is not long ago: what changed is suspected first."""
    last = next((one for one in reversed(seen.history) if one.service == service), None)
    if last is None or not 0 <= seen.now - last.at <= _RECENT or not _named(last):
        return None
    return f"release {last.from_release or 'none'} -> {last.to} {age(seen.now - last.at)} ago"


def _named(entry: HistoryEntry) -> bool:
    names = filter(None, (entry.from_release, entry.to))
    return all(map(_RELEASE.fullmatch, names))
