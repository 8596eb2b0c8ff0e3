"""Usage of models by key and day: read from answers, and kept in a small database."""

import asyncio
import json
import os
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from sparkwright.host.lib.annotations import Any

#: Days to keep, and the largest number of rows that wait in memory for the database.
_DAYS, ROWS = 400, 20_000
#: Largest number of bytes of an answer, and of an event, that are searched for usage.
_KEPT, _EVENT = 64 << 10, 1 << 20
#: Largest believable number of tokens; an engine that reports more is faulty.
_TOKENS = 1 << 32
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_MEMBER = re.compile(r'"usage"\s*:\s*')
COLUMNS = ("requests", "failed", "tokens_in", "tokens_out", "seconds", "cut")
_TABLE = """
CREATE TABLE IF NOT EXISTS usage (
    day TEXT, key TEXT, model TEXT, requests INTEGER, failed INTEGER, tokens_in INTEGER,
    tokens_out INTEGER, seconds REAL, cut INTEGER, PRIMARY KEY (day, key, model)
) WITHOUT ROWID
"""
_ADD = f"""
INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
{", ".join(f"{column} = {column} + excluded.{column}" for column in COLUMNS)}
"""
_SUMS = "SELECT key, sum(requests), sum(tokens_in + tokens_out) FROM usage WHERE day = ? GROUP BY 1"

Row = tuple[str, str, str]


class Meter:
    """Meter of one answer's usage, fed with the pieces of the answer.

    Attributes:
        stream: whether the answer is a stream of events.
        hide: whether to hide the usage event, which the client did not request.
        tokens_in, tokens_out: tokens that the answer reports; 0 before the report.
        events: events with data so far: roughly the tokens of an incomplete stream.
        error: whether an event was an error.
        done: whether the stream's last event has arrived; OpenAI's client then closes the
            connection.
    """

    def __init__(self, *, stream: bool = False, hide: bool = False) -> None:
        self.stream, self.hide = stream, hide
        self._kept, self._whole = b"", True
        self.tokens_in = self.tokens_out = self.events = 0
        self.error = self.done = False

    def feed(self, data: bytes) -> bytes:
        """Process a piece of the answer. Returns the bytes for the client: all but a usage event
        that the client did not request.
        """
        self._kept += data
        if not self.stream:
            if len(self._kept) > 2 * _KEPT:
                self._kept, self._whole = self._kept[-_KEPT:], False
            return data
        passed, begin = b"", 0
        for end in _BLANK_LINE.finditer(self._kept):
            event, begin = self._kept[begin : end.end()], end.end()
            passed += b"" if self._is_hidden(event) else event
        self._kept = self._kept[begin:]
        if len(self._kept) > _EVENT:  # the text is too long for a usage event
            passed, self._kept = passed + self._kept, b""
        return passed if self.hide else data

    def end(self) -> bytes:
        """Finish the answer, whether complete or cut off. Returns the bytes that were still held
        back.
        """
        rest, self._kept = self._kept, b""
        if self.stream:
            return rest if self.hide else b""
        text = rest.decode(errors="replace")
        with suppress(ValueError, RecursionError):
            if self._whole:
                self._read(json.loads(text))
            elif members := list(_MEMBER.finditer(text)):  # engines write usage after the content
                self._read({"usage": json.JSONDecoder().raw_decode(text, members[-1].end())[0]})
        return b""

    def _is_hidden(self, event: bytes) -> bool:
        data = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
        first = data[0].strip() if data else b"[DONE]"
        error = first.startswith(b'{"error"')
        self.error |= error
        self.done |= bool(data) and first == b"[DONE]"
        self.events += first != b"[DONE]" and not error
        document: Any = None
        if b'"usage"' in event:
            with suppress(ValueError, RecursionError):
                document = json.loads(b"\n".join(data))
        return self._read(document) and self.hide and document.get("choices") == []

    def _read(self, document: Any) -> bool:
        """Read the usage of a body or an event: at the top, as in completions, or nested, as in the
        responses and messages APIs.
        """
        if not isinstance(document, dict):
            return False
        holders = (document, document.get("response"), document.get("message"))
        usages = (each.get("usage") for each in holders if isinstance(each, dict))
        usage = next((each for each in usages if isinstance(each, dict)), None)
        if usage is None:
            return False
        counts = {k: n for k, n in usage.items() if type(n) is int and 0 <= n < _TOKENS}
        tokens_out = counts.get("completion_tokens", counts.get("output_tokens", 0))
        # Rerankers report only the sum. The messages API counts cached tokens separately.
        read = counts.get("input_tokens", counts.get("total_tokens", tokens_out) - tokens_out)
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        tokens_in = counts.get("prompt_tokens", read) + sum(counts.get(name, 0) for name in cached)
        self.tokens_in = max(self.tokens_in, tokens_in)
        self.tokens_out = max(self.tokens_out, tokens_out)
        return True


class Ledger:
    """Counts by day, key and model, in memory and, every two seconds, in a database.

    If the database can't be written, requests continue, and counts stay in memory.

    Attributes:
        totals: counts since the program's start, by key and model.
    """

    def __init__(self, path: str) -> None:
        self._path, self._fault = path, ""
        self._database: sqlite3.Connection | None = None
        self._pending, self._writing = _rows(), _rows()
        self._day, self._sums = "", dict[str, tuple[int, int]]()
        self.totals = _rows()

    def add(self, key: str, model: str, *counts: float) -> None:
        """Count a request; ``counts`` are in the order of COLUMNS."""
        _add(self._pending, (today(), key, model), counts)
        _add(self.totals, ("", key, model), counts)

    def of_today(self, key: str) -> tuple[float, float]:
        """Return the requests and tokens of a key today, including counts of an earlier process."""
        day = today()
        added = (*self._pending.items(), *self._writing.items())
        rows = [(row[0], row[2] + row[3]) for name, row in added if name[:2] == (day, key)]
        rows += [self._sums[key]] if day == self._day and key in self._sums else []
        return sum(row[0] for row in rows), sum(row[1] for row in rows)

    @property
    def unwritten(self) -> int:
        """Return the number of requests that are only in memory."""
        return int(sum(row[0] for row in (*self._pending.values(), *self._writing.values())))

    async def flush(self) -> None:
        """Write new counts to the database. Only one thread writes at a time."""
        self._writing, self._pending, day, fault = self._pending, _rows(), today(), ""
        try:
            sums = await asyncio.get_running_loop().run_in_executor(None, self._write, day)
            self._day, self._sums = day, sums
        except (OSError, RuntimeError, sqlite3.Error) as error:  # RuntimeError: no thread starts
            fault = f"{self._path} can't be written, so usage is kept in memory: {error}"
            newest = sorted(self._writing, reverse=True)  # names begin with the day
            if len(newest) > ROWS:
                fault += f"; {len(newest) - ROWS} rows are lost"
            for name in newest[:ROWS]:
                _add(self._pending, name, self._writing[name])
        self._writing = _rows()
        if fault != self._fault:
            print(fault or f"{self._path} is writable again", flush=True)
        self._fault = fault

    def _write(self, day: str) -> dict[str, tuple[int, int]]:
        database = self._database or self._opened()
        self._database = None  # an error makes the next write open the database again
        with database:  # with the sums: if reading fails, the counts are rolled back
            if self._writing or day != self._day:
                database.executemany(_ADD, [(*name, *row) for name, row in self._writing.items()])
                database.execute("DELETE FROM usage WHERE day < ?", (today(-_DAYS),))
            sums = {
                key: (requests, tokens) for key, requests, tokens in database.execute(_SUMS, (day,))
            }
        self._database = database
        return sums

    def _opened(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(self._path, timeout=1, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(_TABLE)
        return database


def _rows() -> dict[Row, list[float]]:
    return defaultdict(lambda: [0] * len(COLUMNS))


def _add(rows: dict[Row, list[float]], name: Row, counts: Iterable[float]) -> None:
    rows[name] = [a + b for a, b in zip(rows[name], counts, strict=True)]


def today(days: int = 0) -> str:
    """Return the UTC date ``days`` days from now."""
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * 86400))
