"""Known lines of a service's log. The patterns and texts are in YAML files: one file for each
engine, and one for containers.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sparkwright.checks.service import facts
from sparkwright.engines import log_causes
from sparkwright.findings.check import Check, Symptom, each, load
from sparkwright.host.lib import journal

#: Causes of failures that Docker, NVIDIA's toolkit and containers report.
_CONTAINERS = Path(__file__).with_name("container_causes.yaml")
FILES = (_CONTAINERS, *log_causes())


@cache
def patterns() -> dict[str, Check]:
    """Checks that match log lines, by id."""
    entries = (item for path in FILES for item in load(path).items())
    return {id_: entry for id_, entry in entries if entry.pattern}


def lasting() -> dict[str, str]:
    """Map patterns of causes that a restart does not fix to the reasons and remedies."""
    entries = (entry for entry in patterns().values() if entry.lasting)
    return {entry.pattern: f"{entry.reason} (remedy: {entry.remedy})" for entry in entries}


def explained(line: str) -> str:
    """Return the log line of a failure, with cause and remedy if the line is known."""
    for entry in load(_CONTAINERS).values():
        if re.search(entry.pattern, line):
            return f"{line} ({entry.reason}; remedy: {entry.remedy})"
    return line


@each(facts.services)
def _lines(service: facts.Serving) -> Iterator[Symptom]:
    for id_, entry in patterns().items():
        line = service.last(entry.pattern)
        if line is not None and not (entry.vague and service.healthy):
            # A line that only reports the engine's end is less useful than the cause before it.
            cause = journal.cause(service.seen.log) if entry.vague else None
            yield Symptom(id_, observed=cause or line)
