"""Answers of hosts to a query, and the hosts without an answer."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Answers(Generic[T]):
    """Answers by host.

    Attributes:
        failures: host -> reason for a missing answer. Every command treats a missing answer as a
            failure: the state of such a host is unknown.
        broken: the plan's fault, in one line; None if the plan is valid.
    """

    answers: dict[str, T]
    failures: dict[str, str] = field(default_factory=dict)
    broken: str | None = None


def keep(path: Path, record: Any) -> None:
    """Write a record of answers for later commands and pages."""
    with suppress(OSError):  # a full disk on this machine must not hide the hosts' answers
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
