"""Fetch the missing ranges of a file into its part over plain HTTP, several at once."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, NoReturn

from sparkwright.host.fetch import holes, sources
from sparkwright.host.fetch.messages import Failed, log
from sparkwright.host.fetch.request import PAGE, FetchRequest
from sparkwright.host.fetch.sources import Location, Source, origin

_BUFFER = 256 << 10  # bytes that a killed connection loses at most
_LARGEST_PIECE = 32 << 20  # bytes of one HTTP request
#: Downloader of the bytes.
_NAME = "plain HTTP"
_EXPIRED = frozenset({400, 401, 403, 404, 410})
_OPENER = sources.opener(sources.Redirects())


class Limit:
    """Limit in bytes per second over all threads of a fetch; None for no limit."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._lock = Lock()
        self._free_at = 0.0

    def take(self, count: int, stop: Event) -> None:
        """Wait until the limit allows this number of bytes."""
        if self._rate is None:
            return
        with self._lock:
            now = time.monotonic()
            # After a pause, at most half a second's bytes may arrive at full speed.
            self._free_at = max(self._free_at, now - 0.5) + count / self._rate
            wait = self._free_at - now
        if wait > 0:
            stop.wait(wait)


class _NoRanges(Exception):
    """The server answered a range request with the whole file."""


class _Cut(Exception):
    """A request ended early. The file has the bytes up to `reached`.

    required: seconds to wait before a retry, from the server's answer.
    """

    def __init__(self, reason: str, reached: int, required: float | None = None) -> None:
        super().__init__(reason)
        self.reached = reached
        self.required = required


class _Expired(_Cut):
    """The CDN refused the request: the signature in the address may have expired."""


def side_by_side(
    work: Callable[[int, int], None], pieces: Iterable[tuple[int, int]], threads: int, abort: Event
) -> None:
    """Process pieces in order in several threads. The first error sets ``abort`` and is raised."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, *piece) for piece in pieces]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            abort.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass
class RangeFetch:
    """Download of the ranges of one part."""

    request: FetchRequest
    source: Source
    part: holes.Part
    stop: Event
    limit: Limit
    _abort: Event = field(default_factory=Event)

    def run(self, location: Location, connections: int) -> bool:
        """Fetch the missing ranges. Raises Failed; the part keeps the bytes that arrived.

        Returns whether every byte was written only once; otherwise a hash made during the download
        is not valid.
        """
        self._location, self._file = location, self.part.file
        pieces = _pieces(self.part.missing(), connections, self.request.chunk_size)
        try:
            side_by_side(self._piece, pieces, connections, self._abort)
            return True
        except _NoRanges:
            log(f"{self._file.path}: the server supports no ranges; fetching the whole file")
            self._abort.clear()
            self.part.received(_NAME, holes.total(self.part.missing()) - self._file.size)
            self._piece(0, self._file.size, whole=True)
            return False

    def _piece(self, start: int, end: int, *, whole: bool = False) -> None:
        """Fetch one range, with retries."""
        tries, refused = sources.Tries(self.request, self.stop), 0
        while not self._abort.is_set():
            location = self._location
            try:
                self._copy(location, start, end)
                return
            except _Cut as cut:
                if whole:
                    self.part.received(_NAME, start - cut.reached)
                elif cut.reached > start:
                    start = cut.reached
                    tries.failed = 0
                if isinstance(cut, _Expired) and refused < 3:
                    refused += 1
                    self._location = self.source.locate(self._file)
                    continue
                reason = f"{self._file.path} at byte {cut.reached}: {cut}"
                tries.pause(reason, cut.required, cut)

    def _copy(self, location: Location, start: int, end: int) -> None:
        """Make one request and write its body. Raises _Cut if the request ends early."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "sparkwright", **location.headers}
        if (start, end) != (0, self._file.size):
            headers["Range"] = f"bytes={start}-{end - 1}"
        request = urllib.request.Request(location.url, headers=headers)
        try:
            answer = _OPENER.open(request, timeout=self.request.stall)
        except urllib.error.HTTPError as error:
            error.close()
            self._refused(error, start, location)
        except (OSError, http.client.HTTPException) as error:
            sources.raise_untrusted(origin(location.url)[1], error)
            raise _Cut(_reason(error), start) from error
        with answer:
            self._check_answer(answer, headers, start)
            self._write(answer, start, end)

    def _refused(self, error: urllib.error.HTTPError, start: int, location: Location) -> NoReturn:
        """Raise an HTTP error as a retry, an expired signature, or a final failure."""
        file, elsewhere = self._file, origin(location.url) != origin(self.request.endpoint)
        reason = f"{origin(location.url)[1]} answers HTTP {error.code}"
        if error.code in sources.TRANSIENT:
            raise _Cut(reason, start, sources.retry_after(error.headers)) from error
        if error.code == 416:
            raise Failed("shorter_on_server", file=file.path, size=file.size) from error
        if error.code in _EXPIRED if elsewhere else self.source.renews and error.code == 401:
            raise _Expired(reason, start) from error
        if elsewhere:
            raise Failed("refused", file=file.path, reason=reason) from error
        raise self.source.refusal(error.code, error.headers, file.path) from error

    def _check_answer(self, answer: Any, headers: dict[str, str], start: int) -> None:
        """Check that the answer has the requested bytes."""
        size = str(self._file.size)
        if answer.status == 206:
            sent = answer.headers.get("Content-Range") or ""
            unit, _, total = sent.partition("/")
            if total not in {size, "*"}:
                raise Failed("size_on_server", file=self._file.path, length=total, size=size)
            if unit.removeprefix("bytes ").partition("-")[0].strip() != str(start):
                raise _Cut(f"the server answers with another range ({sent})", start)
            return
        if answer.status != 200:
            raise _Cut(f"the server answers HTTP {answer.status}", start)
        if "Range" in headers:
            raise _NoRanges
        length = answer.headers.get("Content-Length")
        if length not in {None, size}:
            raise Failed("size_on_server", file=self._file.path, length=length, size=size)

    def _write(self, answer: Any, start: int, end: int) -> None:
        """Write the body into the part, in whole pages except at the end of the range."""
        buffer = memoryview(bytearray(_BUFFER))
        with self.part.writing(_NAME) as write:
            at = start
            while at < end:
                # The next write ends at a multiple of the buffer's size.
                goal = min(end, (at // _BUFFER + 1) * _BUFFER) - at
                filled, reason = self._fill(answer, buffer, goal)
                if filled < goal:
                    filled = max(0, (at + filled) // PAGE * PAGE - at)
                write(buffer[:filled], at)
                at += filled
                if reason is not None:
                    raise _Cut(reason, at)

    def _fill(self, answer: Any, buffer: memoryview, goal: int) -> tuple[int, str | None]:
        """Read up to ``goal`` bytes. Returns the number of bytes read, and the reason if the number
        is lower.
        """
        filled = 0
        while filled < goal:
            if self.stop.is_set() or self._abort.is_set():
                raise Failed("stopped")
            try:
                count = answer.readinto(buffer[filled:goal])
            except TimeoutError:
                return filled, f"no byte arrived for {self.request.stall:g} s"
            except (OSError, http.client.HTTPException) as error:
                return filled, _reason(error)
            if not count:
                return filled, "the connection was cut"
            filled += count
            self.limit.take(count, self.stop)
        return filled, None


def _pieces(missing: holes.Ranges, connections: int, least: int) -> Iterator[tuple[int, int]]:
    """Cut ranges into requests: large requests first, smaller requests towards the end.

    Towards the end, no connection has a large request left, and few bytes remain to be hashed.
    """
    left = holes.total(missing)
    for start, end in missing:
        at = start
        while at < end:
            share = left // (2 * connections) // PAGE * PAGE
            piece = min(_LARGEST_PIECE, max(least, share), end - at)
            yield at, at + piece
            at += piece
            left -= piece


def _reason(error: BaseException) -> str:
    """Describe a connection error without the address, which may contain a signature."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "the server did not answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return str(reason.strerror)
    return type(reason).__name__
