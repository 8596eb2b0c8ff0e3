"""Doctor: what a host and its services show, for ``sparkwright doctor``. Changes nothing."""

from __future__ import annotations

from sparkwright.operations.asked import ask_each
from sparkwright.operations.questions import examined


def doctor(answers: str | None = None) -> None:
    """Collect what is to be judged.

    Args:
        answers: file that gets what the hosts answer.
    """
    ask_each("Doctor: look", examined)
