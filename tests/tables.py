"""Input of tests in YAML, in a file beside each module of tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.libyaml import safe_load

_Test = TypeVar("_Test", bound=Callable[..., object])


def merged(base: Any, changes: Any) -> Any:
    """Merge nested mappings: values of the second mapping replace values of the first."""
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping):
        return changes
    changed = {key: merged(base.get(key), value) for key, value in changes.items()}
    return {**base, **changed}


class Tables:
    """The YAML file beside a test module, with the rows of each test under its name."""

    def __init__(self, module: str) -> None:
        self.data: dict[str, Any] = safe_load(Path(module).with_suffix(".yaml").read_text("utf-8"))

    def __call__(self, *names: str, more: Sequence[Any] = ()) -> Callable[[_Test], _Test]:
        """Run a test for each of its rows, and for rows of ``more`` that YAML can't express."""

        def parametrized(test: _Test) -> _Test:
            rows = [*self.data[test.__name__], *more]
            run: _Test = pytest.mark.parametrize(names if names[1:] else names[0], rows)(test)
            return run

        return parametrized
