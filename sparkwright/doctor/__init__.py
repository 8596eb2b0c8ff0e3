"""Symptoms to causes to remedies: everything the cards' troubleshooting knows, as checks.

Pure: facts come from roles/doctor/host/collect.py. Each check stands alone; a new one is a few
lines in the module of its kind, and a test that provokes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkwright.doctor import engine, hardware, host, logs, service, watched
from sparkwright.doctor.check import Check, Diagnosis, diagnosed
from sparkwright.doctor.facts import Facts, facts
from sparkwright.findings.finding import Severity

__all__ = ["CHECKS", "Diagnosis", "Facts", "diagnose", "facts", "render"]

#: Every check, the exact ones before those that a more exact one makes idle talk.
CHECKS: tuple[Check, ...] = (
    *logs.CHECKS,
    *service.CHECKS,
    *engine.CHECKS,
    *hardware.CHECKS,
    *host.CHECKS,
    *watched.CHECKS,
)
_ALSO_WATCHED = (
    *("wedge", "acceptance-collapse", "kv-cache-full", "restarts", "given-up", "gpu-heat"),
    *("gpu-power-brake", "gb10-low-power", "disk-full", "gpu-silent"),
)
#: What preflight mentions and nobody suffers from.
_NO_ILLNESS = ("docker-user",)


def diagnose(seen: Facts) -> list[Diagnosis]:
    """What ails a host, errors first.

    An illness that both the look and the watch see is told once, as the look sees it; a vague
    diagnosis of a service is left out beside an exact error of the same service.
    """
    found = [diagnosed(check, sight) for check in CHECKS for sight in check.look(seen)]
    known = {(one.name, one.service) for one in found}
    for check in CHECKS:
        if check.name in _ALSO_WATCHED:
            found += [
                one
                for sight in watched.as_watched(check).look(seen)
                if ((one := diagnosed(check, sight)).name, one.service) not in known
            ]
    found += _preflight(seen)
    vague = {check.name for check in CHECKS if check.vague}
    exact = {
        one.service for one in found if one.severity is Severity.ERROR and one.name not in vague
    }
    told = [one for one in found if one.name not in vague or one.service not in exact]
    return sorted(told, key=lambda one: one.severity is not Severity.ERROR)


def _preflight(seen: Facts) -> list[Diagnosis]:
    """What preflight finds on the host: the same words, as a diagnosis."""
    return [
        Diagnosis(
            name=one["check"],
            severity=Severity(one["severity"]),
            service=None,
            symptom=f"{one['found']}; needed: {one['needed']}",
            cause=one["why"],
            remedy=one["remedy"],
            source="preflight",
        )
        for one in seen.findings
        if one["check"] not in _NO_ILLNESS
    ]


def render(found: Mapping[str, list[Diagnosis]]) -> str:
    """Every host's diagnoses as text."""
    lines: list[str] = []
    for name, diagnoses in found.items():
        if not diagnoses:
            lines.append(f"{name}: nothing ails it")
            continue
        count = sum(one.severity is Severity.ERROR for one in diagnoses)
        counts = _count(count, "error"), _count(len(diagnoses) - count, "warning")
        lines.append(f"{name}: {', '.join(counts)}")
        lines += [f"  {line}" for one in diagnoses for line in one.lines()]
    return "\n".join(lines)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
