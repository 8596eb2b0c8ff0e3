"""The cards' decision tables: which recipe for which workload on which GPU."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from sparkwright.catalog.data import Data, Name

Workload = Literal[
    "chat",  # one interactive user, short to medium context
    "agents",  # a gateway of agents: one long conversation and many short-lived helpers
    "long-context",  # few sessions beyond 32K tokens
    "capacity",  # many sessions or long contexts: the KV cache is what runs out
    "throughput",  # many requests at a time, latency does not matter
    "creative",  # sampled prose
    "vision",  # images in prompts
    "small",  # the least memory
]


class Choice(Data):
    """A recipe for a workload.

    Attributes:
        workload: what the service is for.
        gpus: compute capabilities that this holds for.
        recipe: an entry of the catalog.
        rank: 1 is the first choice.
    """

    workload: Workload
    gpus: tuple[str, ...]
    recipe: Name
    rank: int
    why: str
    source: str
    date: dt.date


class Advice(Data):
    """Choices of one card.

    Attributes:
        choices: recipes by workload.
    """

    kind: Literal["advice"]
    name: Name
    choices: tuple[Choice, ...]
