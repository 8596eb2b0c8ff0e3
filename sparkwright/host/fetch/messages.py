"""Messages and failures of the program. messages.json has the texts: cause and remedy."""

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
    """Return a message with its facts filled in."""
    return str(_TEXTS[name]).format(**facts)


def log(line: str) -> None:
    """Write one plain line to stderr."""
    print(line, file=sys.stderr, flush=True)


class Failed(Exception):
    """A failed fetch. The fetched parts are kept, and the next run continues with them."""

    def __init__(self, name: str, /, **facts: Any) -> None:
        super().__init__(text(name, **facts))


def check(stop: Event) -> None:
    """Raise Failed if the run must end."""
    if stop.is_set():
        raise Failed("stopped")


def refusal(source: str, answer: Mapping[str, object]) -> str:
    """Return the name of the message for an HTTP error, from the first rule that matches the
    answer.
    """
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
