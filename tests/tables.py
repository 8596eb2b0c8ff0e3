"""Input of tests in tests/fixtures/tables/: a file for each folder, an entry for each test."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.libyaml import safe_load

_FOLDER = Path(__file__).parent / "fixtures/tables"
_Test = TypeVar("_Test", bound=Callable[..., object])


@cache
def tables(folder: str) -> dict[str, Any]:
    """Tables and other data of a folder's tests."""
    found: dict[str, Any] = safe_load((_FOLDER / f"{folder}.yaml").read_text(encoding="utf-8"))
    return found


def table(test: _Test) -> _Test:
    """Run a test for each row of the table of its name."""
    found = tables(test.__module__.split(".")[-2])[test.__name__]
    run: _Test = pytest.mark.parametrize(found["names"], found["rows"])(test)
    return run
