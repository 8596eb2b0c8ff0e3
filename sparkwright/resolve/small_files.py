"""Small files of a model's repository: read as data, within bounds, and never run.

Whoever owns the repository writes them, and may write anything.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import requests

#: The largest honest ones: a tokenizer_config.json with all added tokens has about 2 MiB.
MOST_BYTES = 8 << 20
_TIMEOUT = (5, 30)
_SECONDS = 60.0
_PIECE = 64 << 10


class Unusable(ValueError):
    """A file that is not what one of its kind is."""


def bounded(answer: requests.Response, most: int = MOST_BYTES) -> bytes:
    """The body of an answer that was asked for with ``stream=True``.

    Raises:
        Unusable: for one that is larger, or that takes longer than a minute.
    """
    found = bytearray()
    until = time.monotonic() + _SECONDS
    for piece in answer.iter_content(_PIECE):
        found += piece
        if len(found) > most:
            raise Unusable(f"has more than {most >> 20} MiB")
        if time.monotonic() > until:
            raise Unusable(f"did not come within {_SECONDS:g} s")
    return bytes(found)


def download(url: str, headers: dict[str, str]) -> bytes | None:
    """A small file; None where there is none.

    Raises:
        Unusable: for one that is none.
        requests.RequestException: for a hub out of reach.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    with requests.get(url, headers=headers, timeout=_TIMEOUT, stream=True) as answer:
        return bounded(answer) if answer.ok else None


def parsed(text: bytes) -> dict[str, Any]:
    """A JSON object.

    Raises:
        Unusable: for anything else, ``NaN`` and ``Infinity`` among it.
    """
    try:
        found = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise Unusable("has lists in too many lists") from None
    except ValueError as error:
        raise Unusable(f"is not JSON: {str(error)[:120]}") from None
    if not isinstance(found, dict):
        raise Unusable("is not a JSON object")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")
