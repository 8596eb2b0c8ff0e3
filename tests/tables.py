"""Tables of tests: YAML beside the test file of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.libyaml import safe_load


def table(test_file: str, name: str) -> Any:
    """A table of the file beside a test file."""
    return safe_load(Path(test_file).with_suffix(".yaml").read_text())[name]


def merged(base: Any, changes: Any) -> Any:
    """Mappings of mappings, with the changes of the second."""
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping):
        return changes
    changed = {key: merged(base.get(key), value) for key, value in changes.items()}
    return {**base, **changed}
