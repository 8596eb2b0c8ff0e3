"""Causes of failures that Docker, NVIDIA's toolkit and containers report."""

import re
from pathlib import Path

from sparkwright.findings.check import load

CONTAINER_CAUSES = Path(__file__).with_suffix(".yaml")


def explained(line: str) -> str:
    """Return a failure, with cause and remedy if its line is known."""
    for entry in load(CONTAINER_CAUSES).values():
        if re.search(entry.pattern, line):
            return f"{line} ({entry.reason}; remedy: {entry.remedy})"
    return line
