"""Answers of hosts to one question, and the hosts without an answer."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Answers(Generic[T]):
    """Answers by host.

    Attributes:
        failures: why a host gave no answer. Every command treats a missing answer as a failure: the
            state of such a host is unknown.
        broken: the plan's fault, in one line; None if the plan is valid.
    """

    answers: dict[str, T]
    failures: dict[str, str] = field(default_factory=dict)
    broken: str | None = None
