"""The deep smoke test, for ``sparkwright smoke``: everything that a service has to do."""

from __future__ import annotations

from sparkwright.run.asked import ask_each
from sparkwright.run.questions import deep_smoke


def smoke(answers: str | None = None, planless: bool = False) -> None:
    """Ask each service for everything that its recipe promises.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    ask_each("Smoke: deep", deep_smoke)
