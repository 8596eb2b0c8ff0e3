"""Bench: what the host says of itself, for ``sparkwright bench`` (which measures from outside)."""

from __future__ import annotations

from functools import partial

from sparkwright.run.asked import ask_each
from sparkwright.run.questions import bench_facts


def facts(answers: str | None = None) -> None:
    """What serves, and on what.

    Args:
        answers: file that gets what the hosts answer.
    """
    ask_each("Bench: facts", partial(bench_facts, under_load=False))


def under_load(answers: str | None = None) -> None:
    """The GPU's clocks, temperature and power while a service works.

    Args:
        answers: file that gets what the hosts answer.
    """
    ask_each("Bench: the GPU under load", partial(bench_facts, under_load=True))
