"""Which recipe for which workload on which GPU: what cards say, and what this project reads."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sparkwright.catalog.data import Data, Name
from sparkwright.text.shipped_yaml import beside

if TYPE_CHECKING:
    Workload = str
else:
    Workload = Literal[tuple(beside(__file__, "vocabulary.yaml")["workloads"])]


class Choice(Data):
    """A recipe for a workload.

    Attributes:
        workload: purpose of the service.
        gpus: compute capabilities that this holds for.
        recipe: an entry of the catalog.
        rank: 1 is the first choice; this project's, whoever says the rest.
        by: author of ``why``: the card that ``source`` names, or this project.
        measurements: the catalog's, of the same models, whose whole range is shown; a speed in
            ``why`` is one of theirs.
        figure: of these, which one the order goes by.
    """

    workload: Workload
    gpus: tuple[str, ...]
    recipe: Name
    rank: int
    by: Literal["card", "project"] = "project"
    measurements: tuple[Name, ...] = ()
    figure: Literal["decode", "tpot", "aggregate", "aggregate_peak"] = "decode"
    why: str
    source: str
    date: dt.date


class Advice(Data):
    """Choices that belong together.

    Attributes:
        ranked_by: compute capability -> workload -> what the order of its recipes goes by.
        choices: recipes by workload.
    """

    kind: Literal["advice"]
    name: Name
    ranked_by: dict[str, dict[Workload, str]] = Field(default_factory=dict)
    choices: tuple[Choice, ...]
