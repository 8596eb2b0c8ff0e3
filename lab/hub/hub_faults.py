"""Faults that a test can order, and counters that it can read.

    POST   /control            {"match": "/cdn/*/model-00003-*", "drop_after": 1000000, "times": 1}
    GET    /control            {"faults": [{"id": 1, "match": ..., "times": 1, "hits": 0}]}
    DELETE /control            lifts all faults
    GET    /control/counters   requests, statuses, bytes, and both per file
    DELETE /control/counters   sets them to zero

A fault has one kind (KINDS) and these options: `match`, a pattern for the URL path in which `*`
also matches slashes (default: all paths); `method` (default: all methods); `times`, the number of
applications (default: no limit); `headers` to add to an ordered status. Several faults may be in
force at once. A fault is counted only when it applies: a byte to corrupt must be in the requested
range, and a response to cut must have more bytes than the limit.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

# Kind -> type of its value.
KINDS: dict[str, type] = {
    "status": int,  # answer with this status instead of the file
    "sleep": float,  # seconds to wait before answering
    "drop_after": int,  # close the connection after this many bytes of a response's body
    "drop_at": int,  # close the connection before the byte at this offset of the file
    "corrupt_at": int,  # flip all bits of the byte at this offset of the file
    "truncate": int,  # behave as if the file had only this many bytes
    "rate": int,  # bytes per second and connection
    "etag": str,  # the entity tag to answer with, without quotes
}
OPTIONS: dict[str, type] = {"match": str, "method": str, "times": int, "headers": dict}


class BadFault(ValueError):
    """A fault in an unknown form; the message explains the syntax."""


@dataclass
class Fault:
    """An ordered fault. `times` is the number of remaining applications, None for no limit."""

    id: int
    kind: str
    value: Any
    match: str = "*"
    method: str | None = None
    times: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hits: int = 0

    def fits(self, method: str, path: str) -> bool:
        """Return whether the fault may apply to this request."""
        return (
            (self.times is None or self.hits < self.times)
            and (self.method is None or self.method == method)
            and fnmatchcase(path, self.match)
        )

    def state(self) -> dict[str, Any]:
        """Return the fault in its ordered form, with its id and its number of applications."""
        state: dict[str, Any] = {"id": self.id, "match": self.match, self.kind: self.value}
        if self.method is not None:
            state["method"] = self.method
        if self.headers:
            state["headers"] = self.headers
        return state | {"times": self.times, "hits": self.hits}


class Faults:
    """The faults in force, oldest first."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._next = 1

    def order(self, order: object) -> Fault:
        """Add a fault from its JSON form, or raise BadFault."""
        if not isinstance(order, dict):
            raise BadFault('a fault is a JSON object such as {"match": "*", "status": 503}')
        unknown = set(order) - set(KINDS) - set(OPTIONS)
        if unknown:
            raise BadFault(f"unknown key {sorted(unknown)[0]!r}; known: {[*OPTIONS, *KINDS]}")
        kinds = [kind for kind in KINDS if kind in order]
        if len(kinds) != 1:
            raise BadFault(f"give exactly one of {list(KINDS)}, not {kinds}")
        for key, value in order.items():
            _check(key, value, KINDS.get(key) or OPTIONS[key])
        if kinds[0] == "rate" and order["rate"] < 1:
            raise BadFault("'rate' must be at least 1 byte per second")
        if kinds[0] == "status" and not 200 <= order["status"] <= 599:
            raise BadFault("'status' must be between 200 and 599")
        options = {key: value for key, value in order.items() if key in OPTIONS}
        fault = Fault(self._next, kinds[0], order[kinds[0]], **options)
        self._next += 1
        self._faults.append(fault)
        return fault

    def find(self, kind: str, method: str, path: str) -> Fault | None:
        """Return the oldest fault of a kind that fits a request, without counting it."""
        return next((f for f in self._faults if f.kind == kind and f.fits(method, path)), None)

    def take(self, kind: str, method: str, path: str) -> Fault | None:
        """Return the oldest fault of a kind that fits a request, and count it."""
        fault = self.find(kind, method, path)
        if fault is not None:
            fault.hits += 1
        return fault

    def clear(self) -> None:
        """Lift all faults."""
        self._faults.clear()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)


def _check(key: str, value: object, kind: type) -> None:
    # JSON has one kind of number, and Python's booleans are integers.
    good = isinstance(value, (int, float) if kind is float else kind)
    if not good or (isinstance(value, bool) and kind is not bool):
        raise BadFault(f"{key!r} must be of type {kind.__name__}, not {value!r}")
    if isinstance(value, int | float) and value < 0:
        raise BadFault(f"{key!r} must not be negative, not {value!r}")


@dataclass
class Counters:
    """Requests and bytes since the start or the last reset."""

    requests: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    file_requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    file_bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens_at_cdn: int = 0

    def reset(self) -> None:
        """Set all counters to zero."""
        for counter in (self.requests, self.statuses, self.file_requests, self.file_bytes):
            counter.clear()
        self.tokens_at_cdn = 0

    def state(self) -> dict[str, Any]:
        """Return the JSON form."""
        repositories: dict[str, dict[str, Any]] = {}
        for repository, path in sorted(self.file_requests):
            entry = repositories.setdefault(repository, {"requests": 0, "bytes": 0, "files": {}})
            key = (repository, path)
            entry["requests"] += self.file_requests[key]
            entry["bytes"] += self.file_bytes[key]
            entry["files"][path] = {
                "requests": self.file_requests[key],
                "bytes": self.file_bytes[key],
            }
        return {
            "requests": dict(sorted(self.requests.items())),
            "statuses": dict(sorted(self.statuses.items())),
            "bytes": self.file_bytes.total(),
            "tokens_at_cdn": self.tokens_at_cdn,
            "repositories": repositories,
        }
