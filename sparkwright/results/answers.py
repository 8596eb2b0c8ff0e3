"""Answers of hosts to one question, and the hosts that gave none."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Answers(Generic[T]):
    """Answers by host.

    Attributes:
        failures: why a host gave no answer. Every command treats that as a failure: nobody knows
            what such a host runs.
        broken: what of the plan is broken, in one line; None if the plan is whole.
    """

    answers: dict[str, T]
    failures: dict[str, str] = field(default_factory=dict)
    broken: str | None = None
