"""Invented results of a load generator, in which each test changes one place."""

import datetime as dt
from pathlib import Path
from typing import Any

from sparkwright.extras.bench.results import MEASURES, Cell, Result
from tests.libyaml import safe_load

_RESULT: dict[str, Any] = safe_load(Path(__file__).with_name("result.yaml").read_text())
BODY, DRAFTER = _RESULT["models"]
IMAGE, _, TAG = _RESULT["image"]["name"].rpartition(":")
NOON = dt.datetime(2026, 7, 2, 12, tzinfo=dt.UTC)


def cell(**changes: Any) -> Cell:
    """Figures of one stream of coding; None marks a measure that was not taken."""
    (whole,) = _RESULT["cells"]
    names = {measure.name for measure in MEASURES}
    figures = {name: changes.pop(name) for name in names & changes.keys()}
    figures = {name: value for name, value in (whole["measures"] | figures).items()
               if value is not None}  # fmt: skip
    return Cell.model_validate({**whole, **changes, "measures": figures})


def result(*cells: Cell, **changes: Any) -> Result:
    """A run of the production recipe on a Spark."""
    return Result.model_validate({**_RESULT, "when": NOON, "cells": cells or (cell(),), **changes})
