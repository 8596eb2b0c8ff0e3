"""Messages of the program, and failures. messages.json has the texts: cause and remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

OK, FAILED = 0, 1
MESSAGES = Path(__file__).with_name("messages.json")
_TEXTS: dict[str, Any] = json.loads(MESSAGES.read_text(encoding="utf-8"))


def text(name: str, /, **facts: Any) -> str:
    """Return a message with its facts."""
    return str(_TEXTS[name]).format(**facts)


def log(line: str) -> None:
    """Write one plain line to stderr."""
    print(line, file=sys.stderr, flush=True)


class Failed(Exception):
    """A fetch fails. Fetched parts are kept: another run goes on with it."""

    def __init__(self, name: str, /, **facts: Any) -> None:
        super().__init__(text(name, **facts))


def check(stop: Event) -> None:
    """Raise Failed when the run is to end."""
    if stop.is_set():
        raise Failed("stopped")


def refusal(source: str, answer: Mapping[str, object]) -> str:
    """Name of the explanation of an HTTP error: the first rule that an answer meets."""
    for conditions, name in _TEXTS["refusals"][source]:
        if all(answer[key] in values for key, values in conditions.items()):
            return str(name)
    raise LookupError(source)


def size(count: float) -> str:
    """Return a number of bytes with a decimal unit: "1.50 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"
