"""Status: what hosts run and how it came to that, for ``sparkwright status|history|diff``."""

from __future__ import annotations

from functools import partial

from sparkwright.run.asked import ask_each
from sparkwright.run.load import followed
from sparkwright.run.questions import compared


def status(answers: str | None = None, planless: bool = False) -> None:
    """What each host runs, its history, and what of it is not as planned.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    ask_each("Services: status", compared)


def load(
    answers: str | None = None,
    planless: bool = False,
    feed: int = 1,
    interval: float = 2,
    count: int = 0,
) -> None:
    """What each host does now, again and again on its one connection.

    Args:
        answers: file that gets whether the hosts answered.
        planless: whether it goes by what the hosts say where the plan is broken.
        feed: descriptor of this process that gets a line of JSON for each look.
        interval: seconds between two looks at a host.
        count: of looks; 0 is without end.
    """
    ask_each("Services: load", partial(followed, feed=feed, interval=interval, count=count))
