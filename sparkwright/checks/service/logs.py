"""Known lines of a service's log. Patterns and texts are data: an engine's own, and containers'."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sparkwright.checks.service.container_causes import CONTAINER_CAUSES
from sparkwright.checks.service.facts import Facts
from sparkwright.engines import vllm
from sparkwright.findings.check import Check, Symptom, check, load
from sparkwright.host.lib import journal

_ENGINES = (Path(vllm.__file__).with_name("causes.yaml"),)
FILES = (CONTAINER_CAUSES, *_ENGINES)


@cache
def patterns() -> dict[str, Check]:
    """Checks by a line of the log, by id."""
    return {id_: entry for path in FILES for id_, entry in load(path).items()}


@check()
def _lines(facts: Facts) -> Iterator[Symptom]:
    for id_, entry in patterns().items():
        for name, service, _ in facts.each():
            line = service.last(entry.pattern)
            if line is None or (entry.vague and service.healthy):
                continue
            # A line that only says that the engine ended is worth less than the cause before it.
            cause = journal.cause(service.log) if entry.vague else None
            yield Symptom(cause or line, service=name, check=id_)
