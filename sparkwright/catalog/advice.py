"""Which recipe for which workload on which GPU: what cards say, and what this project reads."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from sparkwright.catalog.data import Data, Name
from sparkwright.text.shipped_yaml import beside

if TYPE_CHECKING:
    Workload = str
else:
    Workload = Literal[tuple(beside(__file__, "vocabulary.yaml")["workloads"])]


class Choice(Data):
    """A recipe for a workload.

    Attributes:
        workload: what the service is for.
        gpus: compute capabilities that this holds for.
        recipe: an entry of the catalog.
        rank: 1 is the first choice; this project's, whoever says the rest.
        by: who says ``why``: the card that ``source`` names, or this project, reading it.
        measured_on: the GPU of the figures in ``why``; None where it has none of a measurement.
    """

    workload: Workload
    gpus: tuple[str, ...]
    recipe: Name
    rank: int
    by: Literal["card", "project"] = "project"
    measured_on: str | None = None
    why: str
    source: str
    date: dt.date

    @model_validator(mode="after")
    def _speed_has_a_gpu(self) -> Choice:
        if "tokens/s" in self.why and self.measured_on is None:
            raise ValueError("a speed needs 'measured_on', the GPU that it was measured on")
        return self


class Advice(Data):
    """Choices that belong together.

    Attributes:
        choices: recipes by workload.
    """

    kind: Literal["advice"]
    name: Name
    choices: tuple[Choice, ...]
