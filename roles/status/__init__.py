"""Status: what hosts run and how it came to that, for ``sparkwright status|history|diff``."""

from __future__ import annotations

from sparkwright.operations.asked import ask_each
from sparkwright.operations.questions import compared


def status(answers: str | None = None, planless: bool = False) -> None:
    """What each host runs, its history, and what of it is not as planned.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    ask_each("Services: status", compared)
