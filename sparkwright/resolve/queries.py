"""Queries to servers of outside: hubs, registries and git repositories.

Whoever owns a repository writes its files, and may write anything: they are read as data, within
bounds, and never run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sparkwright.documents.bounds import Unusable
from sparkwright.resolve.messages import MESSAGES

#: The largest honest small file: a tokenizer_config.json with all added tokens has about 2 MiB.
MOST_BYTES = 8 << 20
TIMEOUT = (5, 30)
_SECONDS = 60.0
_PIECE = 64 << 10
_REASONS = (
    "Connection refused",
    "No route to host",
    "Name or service not known",
    "timed out",
    "Temporary failure in name resolution",
)


@contextmanager
def asking(subject: str, server: str, *, answer: str, setting: str) -> Iterator[None]:
    """Make one finding of a query's errors.

    Args:
        answer: what the server should return, in words.
        setting: where another server is named.

    Raises:
        UserError: when the server is out of reach, or returns something else.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    try:
        yield
    except requests.RequestException as error:
        text = str(error)
        reason = next((reason for reason in _REASONS if reason in text), text[:200])
        facts = {"server": server, "reason": reason, "setting": setting}
        raise MESSAGES.refusal("unreachable", subject, **facts) from error
    except (KeyError, TypeError, ValueError, Unusable) as error:
        facts = {"server": server, "answer": answer, "setting": setting}
        raise MESSAGES.refusal("another-answer", subject, **facts) from error


def body(pieces: Iterable[bytes], most: int) -> bytes:
    """Return the body of an answer, which comes in pieces.

    Raises:
        Unusable: for one that is larger, or takes longer than a minute.
    """
    result = bytearray()
    until = time.monotonic() + _SECONDS
    for piece in pieces:
        result += piece
        if len(result) > most:
            raise Unusable(f"it has more than {most >> 20} MiB", "take another one")
        if time.monotonic() > until:
            raise Unusable(f"it did not come within {_SECONDS:g} s", "try again")
    return bytes(result)


def download(url: str, headers: dict[str, str]) -> bytes | None:
    """Return a small file; None where there is none.

    Raises:
        Unusable: for one that is beyond the bounds.
        requests.RequestException: for a server out of reach.
    """
    import requests

    with requests.get(url, headers=headers, timeout=TIMEOUT, stream=True) as answer:
        return body(answer.iter_content(_PIECE), MOST_BYTES) if answer.ok else None
