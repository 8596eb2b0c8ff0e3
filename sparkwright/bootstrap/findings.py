"""Findings of bootstrap: what is in the way of a step on a host."""

from __future__ import annotations

from sparkwright.findings.finding import Finding, Severity, Subject

#: Source of what real hosts are like.
HOSTS = "reports of users"


def error(
    id_: str, observed: str, expected: str, reason: str, remedy: str, source: str = "sparkwright"
) -> Finding:
    """A finding that refuses the host."""
    return Finding(id_, Severity.ERROR, Subject(), observed, expected, reason, remedy, source)


def warning(
    id_: str, observed: str, expected: str, reason: str, remedy: str, source: str = "sparkwright"
) -> Finding:
    """A finding that is reported and passed."""
    return Finding(id_, Severity.WARNING, Subject(), observed, expected, reason, remedy, source)
