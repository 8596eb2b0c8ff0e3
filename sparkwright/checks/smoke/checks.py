"""What the deep smoke test's checks ask, and what their failures mean: read from checks.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import Field, TypeAdapter

from sparkwright.catalog.data import Data, Name

_FILE = Path(__file__).with_name("checks.yaml")
#: Where causes stand that any check may run into.
ANY = "any"


class Cause(Data):
    """Why a check fails.

    Attributes:
        meaning: what it means for those who use the service.
        remedy: what to do, or where to look.
        source: who says so: a card (see docs/catalog.md), vLLM, or a report.
    """

    meaning: str
    remedy: str
    source: str


class CheckEntry(Data):
    """One check: what it asks for, and its causes of failure by the names that the host gives."""

    asks: str
    causes: dict[Name, Cause] = Field(default_factory=dict)


@cache
def checks() -> Mapping[str, CheckEntry]:
    """Every check by name, in the order in which they are asked; ``any`` is the last."""
    entries = TypeAdapter(dict[Name, CheckEntry])
    return entries.validate_python(yaml.safe_load(_FILE.read_text(encoding="utf-8")))


def cause_of(check: str, cause: str | None) -> Cause | None:
    """What a failure means; None for a cause that is not in the file."""
    for name in (check, ANY):
        entry = checks().get(name)
        if entry and cause in entry.causes:
            return entry.causes[cause]
    return None
