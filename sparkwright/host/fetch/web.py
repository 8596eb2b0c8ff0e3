"""HTTP rules of hub, registry and downloads: what is retried and when, and what is one host."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.request
from email.utils import parsedate_to_datetime
from threading import Event
from urllib.parse import urlsplit

from sparkwright.host.fetch.errors import Temporary
from sparkwright.host.fetch.request import FetchRequest
from sparkwright.host.lib import bounded

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_LONGEST_WAIT = 30.0
# If a server asks for more, a later run had better ask again.
_LONGEST_RETRY_AFTER = 300.0


def transient(status: int) -> bool:
    """Return whether an HTTP status is worth another try."""
    return status in _TRANSIENT


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, None if it is missing or not valid."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def pause(request: FetchRequest, attempt: int, required: float | None, stop: Event) -> None:
    """Wait before try number attempt + 1, at least as long as the server requires."""
    wait = min(request.backoff * 2.0**attempt, _LONGEST_WAIT)
    if required is not None:
        wait = max(wait, min(required, _LONGEST_RETRY_AFTER))
    if stop.wait(wait):
        raise Temporary("stopped")


def certificate_problem(error: BaseException) -> bool:
    """Return whether a connection failed due to a certificate: no retry helps then."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        reason = getattr(cause, "reason", None)
        cause = (
            reason if isinstance(reason, BaseException) else cause.__cause__ or cause.__context__
        )
    return False


def origin(url: str) -> tuple[str, str, int]:
    """Return (scheme, host, port) of an address."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), port


class _Plain(http.client.HTTPConnection):
    response_class = bounded.downloads  # type: ignore[assignment]


class _Secure(http.client.HTTPSConnection):
    response_class = bounded.downloads  # type: ignore[assignment]


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Plain, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Secure, req)


def opener(*handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Opens addresses; the heads of their answers are bounded. Bodies are the caller's to bound."""
    return urllib.request.build_opener(_Http, _Https, *handlers)
