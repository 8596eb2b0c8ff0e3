"""The table of attacks in docs/security.md, from docs/attacks.yaml."""

from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import table

FILE = Path(__file__).parents[1] / "attacks.yaml"


def attacks() -> list[dict[str, Any]]:
    """Rows with ``attack``, ``defence`` and ``tests``."""
    result: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return result


def part() -> str:
    """Table of attacks and defences."""
    return table(("attack", "defence"), ((row["attack"], row["defence"]) for row in attacks()))
