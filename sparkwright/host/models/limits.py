"""Limits of API keys: requests and tokens per minute and per day.

A request is admitted while the charges so far are below each limit. Tokens are charged when an
answer ends, so requests under way may exceed a token limit. Several addresses share a limit: each
address grants its part without contacting other addresses.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sparkwright.host.models import document, refusal, usage

_MINUTE, _DAY = 60, 86400


class Charges:
    """Charges of this minute and day, by the names of keys."""

    def __init__(self, ledger: usage.Ledger) -> None:
        self._ledger, self._minute = ledger, 0
        self._requests, self._tokens = Counter[str](), Counter[str]()
        #: Requests that were admitted and have not ended, by key.
        self.under_way = Counter[str]()

    @contextmanager
    def admitted(self, name: str, key: document.Key, addresses: int) -> Iterator[None]:
        """Charge a request of a key; the request is under way until the block ends.

        Raises:
            Refused: as in ``judge``.
        """
        self.judge(name, key, addresses)
        self._requests[name] += 1
        self.under_way[name] += 1
        try:
            yield
        finally:
            self.under_way[name] -= 1

    def judge(self, name: str, key: document.Key, addresses: int) -> None:
        """Check whether a request of a key may be served now, without charging it.

        Args:
            addresses: number of addresses that share the limits.

        Raises:
            Refused: a limit is reached; the error has the seconds until its window ends.
        """
        self.charge(name, 0)
        requests, tokens = self._ledger.of_today(name)
        # A minute's charges follow the monotonic clock, a day's charges the ledger's counts for the
        # date.
        to_minute, to_day = _MINUTE - time.monotonic() % _MINUTE, _DAY - time.time() % _DAY
        for limit, charged, unit, seconds in (
            (key.requests_day, requests + self.under_way[name], "requests a day", to_day),
            (key.tokens_day, tokens, "tokens a day", to_day),
            (key.requests_minute, self._requests[name], "requests a minute", to_minute),
            (key.tokens_minute, self._tokens[name], "tokens a minute", to_minute),
        ):
            granted = limit and max(1, limit // addresses)
            if granted and charged >= granted:
                why = f"The API key {name} has used its {granted} {unit}."
                raise refusal.Refused(429, why, max(1, math.ceil(seconds)))

    def charge(self, name: str, tokens: int) -> None:
        """Charge the tokens of a finished answer. The ledger counts the day's tokens."""
        minute = int(time.monotonic() // _MINUTE)
        if minute != self._minute:
            self._minute, self._requests, self._tokens = minute, Counter(), Counter()
        self._tokens[name] += tokens
