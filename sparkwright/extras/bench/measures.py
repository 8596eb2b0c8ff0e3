"""Measures of a result: name, unit, direction, and how far figures may lie apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from sparkwright.catalog.causes import Symptom
from sparkwright.extras.bench.results import Cell


class Measure(BaseModel):
    """One measure of a cell; ``measures.yaml`` has what each key means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    head: str
    value: tuple[str, ...]
    unit: str
    published: str
    more_is_better: bool = True
    apart: float
    why: str
    noise: float
    one_stream: bool = True
    slow: Symptom
    fine: Symptom | None = None
    worse: str

    @property
    def scale(self) -> float:
        """Factor from the catalog's unit to the result's."""
        return 0.001 if self.unit == "s" else 1

    def of(self, cell: Cell) -> float | None:
        """The figure of a cell; None where it was not taken."""
        value: Any = cell
        for key in self.value:
            value = getattr(value, key, None)
        return value  # type: ignore[no-any-return]


_FILE = Path(__file__).with_name("measures.yaml")
MEASURES = TypeAdapter(tuple[Measure, ...]).validate_python(
    yaml.safe_load(_FILE.read_text(encoding="utf-8"))
)
