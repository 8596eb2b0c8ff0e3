"""Doctor: what a host and its services show, for ``sparkwright doctor``. Changes nothing."""

from __future__ import annotations

from sparkwright.run.asked import ask_each
from sparkwright.run.questions import examined


def doctor(answers: str | None = None, planless: bool = False) -> None:
    """Collect what is to be judged.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    ask_each("Doctor: look", examined)
