"""Tables of cases: a test takes the rows under its own name in the YAML file beside its module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.libyaml import safe_load

_Test = TypeVar("_Test", bound=Callable[..., object])


class Tables:
    """The YAML file beside a test module."""

    def __init__(self, module: str) -> None:
        self.data: dict[str, Any] = safe_load(Path(module).with_suffix(".yaml").read_text("utf-8"))

    def __call__(self, *names: str, more: Sequence[Any] = ()) -> Callable[[_Test], _Test]:
        """Parametrize a test by its rows, and by ``more`` that YAML can not express."""

        def parametrized(test: _Test) -> _Test:
            rows = [*self.data[test.__name__], *more]
            mark = pytest.mark.parametrize(names if len(names) > 1 else names[0], rows)
            marked: _Test = mark(test)
            return marked

        return parametrized
