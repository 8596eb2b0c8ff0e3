"""HTTP rules of hub, registry and downloads: what is retried and when, and what is one host."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.lib import bounded

_T = TypeVar("_T")
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_LONGEST_WAIT = 30.0
# If a server asks for more, a later run had better ask again.
_LONGEST_RETRY_AFTER = 300.0


def transient(status: int) -> bool:
    """Return whether an HTTP status is worth another try."""
    return status in _TRANSIENT


def retry_after(headers: Any) -> float | None:
    """Return the seconds of a Retry-After header, None if it is missing or not valid."""
    value = headers.get("Retry-After") or ""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


class Tries:
    """The tries of one query or range, with longer and longer pauses between them."""

    def __init__(self, request: FetchRequest, stop: Event) -> None:
        self._request = request
        self._stop = stop
        self._failed = 0

    def restart(self) -> None:
        """Count from the start: there was progress."""
        self._failed = 0

    def pause(self, reason: str, required: float | None, cause: BaseException) -> None:
        """Wait before the next try, at least as long as the server requires.

        Raises:
            Temporary: when there were enough tries, or the run ends.
        """
        self._failed += 1
        if self._failed > self._request.retries:
            source = self._request.source
            raise Temporary("tries", reason=reason, tries=self._failed, source=source) from cause
        log(f"{reason}; trying again")
        wait = min(self._request.backoff * 2.0 ** (self._failed - 1), _LONGEST_WAIT)
        if required is not None:
            wait = max(wait, min(required, _LONGEST_RETRY_AFTER))
        if self._stop.wait(wait):
            raise Temporary("stopped")


@dataclass(frozen=True)
class Xet:
    """A file in the hub's Xet storage.

    refresh_url returns the address of the storage and a token for it; headers may be sent there.
    """

    hash: str
    refresh_url: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Location:
    """Address of a file, the headers that may be sent there, and the same file in Xet storage."""

    url: str
    headers: dict[str, str]
    xet: Xet | None = None


class Source(ABC):
    """A repository of a hub or registry, queried with bounded retries.

    secret: token or ``user:password``, or None.
    """

    #: Whether tokens are valid for minutes: after HTTP 401 a new one is requested.
    renews = False

    def __init__(self, request: FetchRequest, secret: str | None, stop: Event) -> None:
        self._request = request
        self._secret = secret
        self._stop = stop

    @abstractmethod
    def check(self) -> None:
        """Check that the source has the revision and lets this host read it."""

    @abstractmethod
    def direct(self, path: str) -> Location:
        """Return the source's own address of a file; it may redirect."""

    @abstractmethod
    def locate(self, file: FetchFile) -> Location:
        """Return the address of a large file, after whatever has to be asked before."""

    @abstractmethod
    def refusal(self, status: int, headers: Any, path: str | None = None) -> Failed:
        """Explain an HTTP error: what, why, remedy."""

    def ask(self, query: Callable[[], _T], path: str | None = None) -> _T:
        """Return the result of a query to the endpoint, which is repeated if that may help.

        Raises:
            Failed: with one message in the end.
        """
        tries, endpoint = Tries(self._request, self._stop), self._request.endpoint
        while True:
            try:
                return query()
            except urllib.error.HTTPError as error:
                error.close()
                if not transient(error.code):
                    raise self.refusal(error.code, error.headers, path) from error
                required = retry_after(error.headers)
                tries.pause(f"{endpoint} answers HTTP {error.code}", required, error)
            except (bounded.TooMuch, ValueError, LookupError, TypeError, RecursionError) as error:
                reason = f"{type(error).__name__}: {error}"
                kind = f"not_a_{self._request.source}"
                raise Failed(kind, endpoint=endpoint, reason=reason) from error
            except (OSError, http.client.HTTPException) as error:
                raise_untrusted(endpoint, error)
                cause = getattr(error, "reason", error)
                tries.pause(f"{endpoint} is unreachable ({cause})", None, error)


def secret(request: FetchRequest) -> str | None:
    """Return the token for the endpoint, or None. It comes from a file, never from argv."""
    if request.token_file is None:
        return None
    try:
        token = Path(request.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Failed("token_file", path=request.token_file, reason=error.strerror) from error
    if token and not request.endpoint.startswith("https:") and not request.allow_token_over_http:
        log(f"the token is not sent: {request.endpoint} is not https")
        return None
    return token or None


def raise_untrusted(server: str, error: BaseException) -> None:
    """Raise Failed for a connection that failed due to a certificate: no retry helps then."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise Failed("untrusted", server=server, reason=error) from error
        reason = getattr(cause, "reason", None)
        inner = reason if isinstance(reason, BaseException) else cause.__cause__
        cause = inner or cause.__context__


def origin(url: str) -> tuple[str, str, int]:
    """Return (scheme, host, port) of an address."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), port


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; the token is sent only while scheme, host and port stay the same."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None:
            new.method = req.get_method()
            if origin(newurl) != origin(req.full_url):
                new.remove_header("Authorization")
        return new


class _Bounded(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens http and https with a class of answers."""

    def __init__(self, answers: Callable[..., http.client.HTTPResponse]) -> None:
        super().__init__()
        self._answers = answers

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connection, http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connection, http.client.HTTPSConnection), req)

    def _connection(
        self, kind: type[http.client.HTTPConnection], host: str, **options: Any
    ) -> http.client.HTTPConnection:
        connection = kind(host, **options)
        connection.response_class = self._answers  # type: ignore[assignment]
        return connection


def opener(
    redirects: urllib.request.HTTPRedirectHandler,
    answers: Callable[..., http.client.HTTPResponse] = bounded.downloads,
) -> urllib.request.OpenerDirector:
    """Opens addresses; the heads of their answers are bounded. Bodies are the caller's to bound."""
    return urllib.request.build_opener(_Bounded(answers), redirects)


#: Opens the queries to a hub or registry: an answer has 32 MiB and takes 300 s at most.
QUERIES = opener(Redirects(), bounded.answers(32 * bounded.MIB, 300.0))
