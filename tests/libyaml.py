"""`yaml.safe_load` by libyaml, ten times as fast as the scanner in Python: tests read thousands of
files."""

from typing import Any

import yaml


def safe_load(text: str | bytes) -> Any:
    """The only document of a text."""
    return yaml.load(text, yaml.CSafeLoader)
