"""Hosts as `sparkwright status` reads them, with the findings of their watch."""

from typing import Any

from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.watch.state import WatchFinding, WatchReport
from sparkwright.results.status import Deployment
from tests.unit.results.test_status import NOW, answer

WEDGE = WatchFinding(
    "wedge", "qwen36", "error", "3 requests ran without a token for 9 min", NOW - 60
)


def host(*arguments: WatchFinding, **changes: Any) -> Deployment:
    """A host whose watch reports these findings; by default the watch reports no finding."""
    return answer(watch={"at": NOW - 20, "findings": [vars(item) for item in arguments]}, **changes)


def finding(
    host: str | None = "spark-1", id_: str = "wedge", severity: str = "error", **fields: Any
) -> Finding:
    """A finding of a service."""
    return Finding(id_, Severity(severity), Subject(host, "qwen36"), **fields)


__all__ = ["NOW", "WEDGE", "WatchFinding", "WatchReport", "answer", "finding", "host"]
