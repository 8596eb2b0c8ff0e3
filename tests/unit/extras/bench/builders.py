"""Results as a load generator leaves them, to be changed in one place each (invented)."""

import datetime as dt
from pathlib import Path
from typing import Any

from sparkwright.extras.bench.results import Cell, Result
from tests.libyaml import safe_load

_RESULT: dict[str, Any] = safe_load(Path(__file__).with_name("result.yaml").read_text())
BODY, DRAFTER = _RESULT["models"]
IMAGE, _, TAG = _RESULT["image"]["name"].rpartition(":")
NOON = dt.datetime(2026, 7, 2, 12, tzinfo=dt.UTC)


def cell(**changes: Any) -> Cell:
    """One stream of coding."""
    return Cell.model_validate({**_RESULT["cells"][0], **changes})


def result(*cells: Cell, **changes: Any) -> Result:
    """A run of the production recipe on a Spark."""
    return Result.model_validate({**_RESULT, "when": NOON, "cells": cells or (cell(),), **changes})


def runs(*decodes: float, **changes: Any) -> list[Result]:
    """One run a day, each with this decode rate, the oldest first."""
    return [
        result(cell(decode=decode), when=NOON + dt.timedelta(days=number), **changes)
        for number, decode in enumerate(decodes)
    ]
