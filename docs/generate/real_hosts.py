"""Tables of real hosts in docs/troubleshooting.md, from docs/real-hosts.yaml."""

from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import table

FILE = Path(__file__).parents[1] / "real-hosts.yaml"


def groups() -> dict[str, list[dict[str, Any]]]:
    """Subject -> rows with ``host``, ``result`` and ``tests``."""
    result: dict[str, list[dict[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return result


def part() -> str:
    """Text with a heading and a table for each subject."""
    head = ("host", "sparkwright")
    return "\n\n".join(
        f"### {title}\n\n{table(head, ((row['host'], row['result']) for row in rows))}"
        for title, rows in groups().items()
    )
