"""Recommended recipes by workload and GPU: claims of cards, and this project's conclusions."""

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
        gpus: compute capabilities that the choice holds for.
        recipe: an entry of the catalog.
        rank: 1 is the first choice; this project sets the rank, even if a card gives the reason.
        by: author of ``why``: the card that ``source`` names, or this project.
        measurements: the catalog's measurements of the same models; their whole range is shown, and
            a speed in ``why`` is in this range.
        figure: the measured figure that orders the recipes.
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
    """Recipes by workload, in order of preference.

    Attributes:
        ranked_by: compute capability -> workload -> the figure that orders its recipes.
        choices: recipes by workload.
    """

    kind: Literal["advice"]
    name: Name
    ranked_by: dict[str, dict[Workload, str]] = Field(default_factory=dict)
    choices: tuple[Choice, ...]
