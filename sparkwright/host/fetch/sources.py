"""Queries to a Hugging Face hub or a container registry, and the HTTP rules of downloads.

Queries check that a source has the revision, and return the address of a file. A hub's token is
sent to its own scheme, host and port only. A registry is queried by the OCI distribution protocol
(https://github.com/opencontainers/distribution-spec) and Docker's token protocol: credentials are
sent to the registry's own token service only, and a token to the registry only.
"""

import base64
import http.client
import json
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from sparkwright.host.fetch.messages import Failed, log, refusal
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.lib import bounded, records

_T = TypeVar("_T")
#: HTTP statuses after which another try may succeed.
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_LONGEST_WAIT = 30.0
# Longest pause that a server may demand, in seconds: for a longer pause, a later run should try
# again.
_LONGEST_RETRY_AFTER = 300.0


def retry_after(headers: Any) -> float | None:
    """Return the seconds of a Retry-After header, None without a valid header."""
    with suppress(ValueError):
        return max(0.0, float(headers.get("Retry-After") or ""))
    return None


class Tries:
    """The tries of one query or range, with increasing pauses between them."""

    def __init__(self, request: FetchRequest, stop: Event) -> None:
        self._request = request
        self._stop = stop
        #: Number of failures since the last progress.
        self.failed = 0

    def pause(self, reason: str, required: float | None, cause: BaseException) -> None:
        """Wait before the next try, at least as long as the server requires.

        Raises:
            Failed: the last try failed, or the run ends.
        """
        self.failed += 1
        if self.failed > self._request.retries:
            source = self._request.source
            raise Failed("tries", reason=reason, tries=self.failed, source=source) from cause
        log(f"{reason}; trying again")
        wait = min(self._request.backoff * 2.0 ** (self.failed - 1), _LONGEST_WAIT)
        if required is not None:
            wait = max(wait, min(required, _LONGEST_RETRY_AFTER))
        if self._stop.wait(wait):
            raise Failed("stopped")


@records.dataclass(frozen=True)
class Xet:
    """A file in the hub's Xet storage.

    refresh_url returns the storage's address and a token for it; ``headers`` may be sent to
    refresh_url.
    """

    hash: str
    refresh_url: str
    headers: dict[str, str]


@records.dataclass(frozen=True)
class Location:
    """Address of a file, the headers for the request, and the same file in Xet storage."""

    url: str
    headers: dict[str, str]
    xet: Xet | None = None


class _Queried:
    """A repository of a hub or registry, queried with bounded retries.

    secret: token or ``user:password``, or None.
    """

    #: Whether tokens expire within minutes: after HTTP 401 a new token is requested.
    renews = False

    def __init__(self, request: FetchRequest, secret: str | None, stop: Event) -> None:
        self._request = request
        self._secret = secret
        self._stop = stop

    def failed(self, name: str, /, **facts: Any) -> Failed:
        """Return a failure with the facts of the request."""
        request = self._request
        mine = {"endpoint": request.endpoint, "repo": request.repo, "revision": request.revision}
        return Failed(name, **mine, **facts)

    def refusal(self, status: int, headers: Any, path: str | None = None) -> Failed:
        """Explain an HTTP error with its cause and remedy.

        The hub answers 401 to a bad token, also for public repositories. A request without a token
        can't distinguish a private repository from a missing repository. A gated repository answers
        401 without a token, and 403 with the token of an account that has no access.
        """
        request, message = self._request, headers.get("X-Error-Message") or ""
        code, token = headers.get("X-Error-Code") or "", self._secret is not None
        answer = {"code": code, "message": message, "status": status, "token": token}
        name = refusal(request.source, answer)
        subject = f"{request.repo}/{path}" if path else request.repo
        details = f": {message}" if message else ""
        return self.failed(name, subject=subject, status=status, details=details)

    def ask(self, query: Callable[[], _T], path: str | None = None) -> _T:
        """Return the result of a query to the endpoint; the query is repeated if a retry may help.

        Raises:
            Failed: the last try failed, or a retry would not help.
        """
        tries, endpoint = Tries(self._request, self._stop), self._request.endpoint
        while True:
            try:
                return query()
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in TRANSIENT:
                    raise self.refusal(error.code, error.headers, path) from error
                required = retry_after(error.headers)
                tries.pause(f"{endpoint} answers HTTP {error.code}", required, error)
            except (bounded.TooMuch, ValueError, LookupError, TypeError, RecursionError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise self.failed(f"not_a_{self._request.source}", reason=reason) from error
            except (OSError, http.client.HTTPException) as error:
                raise_untrusted(endpoint, error)
                cause = getattr(error, "reason", error)
                tries.pause(f"{endpoint} is unreachable ({cause})", None, error)


def secret(request: FetchRequest) -> str | None:
    """Return the token for the endpoint, or None. The token comes from a file, never from argv."""
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
    """Raise Failed for an untrusted certificate, since no retry helps."""
    if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
        raise Failed("untrusted", server=server, reason=error) from error


def origin(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), port


class Redirects(urllib.request.HTTPRedirectHandler):
    """Handler that follows redirects, and sends the token only while the scheme, host and port stay
    the same.

    A redirect from https to http or to another protocol is refused.
    """

    #: Whether redirects to another origin are followed.
    leaves = True

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        stays = origin(newurl) == origin(req.full_url)
        if urlsplit(newurl).scheme not in ("https", urlsplit(req.full_url).scheme):
            return None
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None:
            new.method = req.get_method()
            new.remove_header("Proxy-authorization")  # only for the proxy
            if not stays:
                new.remove_header("Authorization")
        return new if stays or self.leaves else None


class _Bounded(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Handler that opens http and https addresses with a given class of answers and, optionally, a
    connect function.
    """

    def __init__(
        self, answers: Callable[..., http.client.HTTPResponse],
        connect: Callable[..., socket.socket] | None, context: ssl.SSLContext | None,
    ) -> None:  # fmt: skip
        super().__init__(context=context)
        self._answers, self._connect = answers, connect

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        def connection(host: str, **more: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(host, **more)
            made.response_class = self._answers  # type: ignore[assignment]
            if self._connect:
                made._create_connection = partial(self._connect, req)  # type: ignore[attr-defined]
            return made

        return super().do_open(connection, req, **options)


def opener(
    redirects: urllib.request.HTTPRedirectHandler,
    answers: Callable[..., http.client.HTTPResponse] = bounded.downloads,
    *handlers: urllib.request.BaseHandler,
    connect: Callable[..., socket.socket] | None = None,
    context: ssl.SSLContext | None = None,
) -> urllib.request.OpenerDirector:
    """Return an opener of addresses. The opener bounds the heads of answers; the caller bounds
    their bodies.

    Args:
        connect: function that opens a connection for a request to ``(host, port)``.
        context: TLS context that verifies https.
    """
    bounds = _Bounded(answers, connect, context)
    made = urllib.request.build_opener(bounds, redirects, *handlers)
    # Some servers refuse the user agent of Python's library.
    made.addheaders = [("User-Agent", "sparkwright")]
    return made


#: Opener of queries to a hub or registry: an answer may have 32 MiB and take 300 s.
QUERIES = opener(Redirects(), bounded.answers(32 * bounded.MIB, 300.0))

#: The hub's name in addresses of Xet tokens, even if a mirror answers.
_HUB = "https://huggingface.co/"
_XET_HASH = re.compile(r"[0-9a-fA-F]{64}")
_XET_TOKENS = re.compile(r'<([^<>]*)>\s*;\s*rel="?xet-auth"?')


class _OnTheHub(Redirects):
    """Handler that follows redirects within the hub (a renamed repository); any other redirect is a
    file's address.
    """

    leaves = False


_METADATA = opener(_OnTheHub(), bounded.answers(bounded.MIB, 300.0))


class Hub(_Queried):
    """Repository of a hub at one commit."""

    def check(self) -> None:
        """Check the endpoint, token, repository and commit before anything is downloaded."""
        commit = self.ask(self._commit)
        if commit != self._request.revision:
            raise self.failed("other_commit", commit=commit)

    def direct(self, path: str) -> Location:
        """Return the hub's own address of a file; the hub may redirect it."""
        request = self._request
        url = f"{request.endpoint}/{request.repo}/resolve/{request.revision}/{quote(path)}"
        return Location(url, self._headers(url))

    def locate(self, file: FetchFile) -> Location:
        """Return the address of a large file, after any redirect to a CDN."""
        request, url = self._request, self.direct(file.path).url
        headers, location = self.ask(partial(self._metadata, url), file.path)
        commit = headers.get("X-Repo-Commit")
        if commit and commit != request.revision:
            raise self.failed("file_of_commit", file=file.path, commit=commit)
        size = headers.get("X-Linked-Size") or (
            headers.get("Content-Length") if origin(location) == origin(url) else None
        )
        if size and size != str(file.size):
            raise Failed("size_on_hub", file=file.path, length=size, size=file.size)
        return Location(location, self._headers(location), self._xet(url, headers))

    def _commit(self) -> object:
        request = self._request
        url = f"{request.endpoint}/api/models/{request.repo}/revision/{request.revision}"
        query = urllib.request.Request(url, headers=self._headers(url))
        with QUERIES.open(query, timeout=30) as reply:
            return json.loads(reply.read())["sha"]

    def _metadata(self, url: str) -> tuple[Any, str]:
        """Return the hub's headers for a file, and the file's address."""
        headers = {"Accept-Encoding": "identity", **self._headers(url)}
        query = urllib.request.Request(url, headers=headers, method="HEAD")
        try:
            with _METADATA.open(query, timeout=30) as reply:
                return reply.headers, reply.url
        except urllib.error.HTTPError as error:
            if error.code not in {301, 302, 303, 307, 308}:
                raise
            error.close()
            location = urljoin(error.url, error.headers["Location"])
            if urlsplit(location).scheme not in ("https", urlsplit(url).scheme):
                raise ValueError("the file's address is not https") from None
            return error.headers, location

    def _xet(self, url: str, headers: Any) -> Xet | None:
        """Return a file's location in Xet storage; None if Xet does not store the file."""
        number = headers.get("X-Xet-Hash") or ""
        linked = _XET_TOKENS.search(headers.get("Link") or "")
        route = linked[1] if linked else headers.get("X-Xet-Refresh-Route")
        if not route or not _XET_HASH.fullmatch(number):
            return None
        if route.startswith(_HUB):
            route = f"{self._request.endpoint}/{route[len(_HUB) :]}"
        refresh_url = urljoin(url, route)
        return Xet(number, refresh_url, self._headers(refresh_url))

    def _headers(self, url: str) -> dict[str, str]:
        """Return the headers for an address: only the hub gets the token."""
        if self._secret is not None and origin(url) == origin(self._request.endpoint):
            return {"Authorization": f"Bearer {self._secret}"}
        return {}


_ACCEPT = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)


class Registry(_Queried):
    """Repository of a registry; its secret is ``user:password``."""

    renews = True
    _lock = Lock()
    _authorization: str | None = None

    def check(self) -> None:
        """Check that the registry has the manifest and lets this host read it."""
        with self._lock:
            self._authorization = self.ask(self._authorize)

    def direct(self, path: str) -> Location:
        """Return the address of a blob or manifest; the registry may redirect it."""
        manifest = path in self._request.manifests
        headers = {"Accept": _ACCEPT} if manifest else {}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return Location(self._url("manifests" if manifest else "blobs", path), headers)

    def locate(self, file: FetchFile) -> Location:
        """Return the address of a file, with a new token."""
        self.check()
        return self.direct(file.path)

    def _url(self, kind: str, digest: str) -> str:
        return f"{self._request.endpoint}/v2/{self._request.repo}/{kind}/sha256:{digest}"

    def _authorize(self) -> str | None:
        """Request the manifest, and answer the registry's challenge, if any. Returns the new
        header.
        """
        url = self._url("manifests", self._request.revision)
        query = urllib.request.Request(url, headers={"Accept": _ACCEPT}, method="HEAD")
        try:
            with QUERIES.open(query, timeout=30):
                return None
        except urllib.error.HTTPError as error:
            challenge = error.headers.get("WWW-Authenticate", "")
            if error.code != 401 or not challenge:
                raise
            error.close()
        scheme, _, rest = challenge.partition(" ")
        account = base64.b64encode((self._secret or "").encode()).decode()
        basic = None if self._secret is None else f"Basic {account}"
        if scheme.lower() == "basic":
            authorization = basic
        else:
            authorization = self._token(dict(re.findall(r'(\w+)="([^"]*)"', rest)), basic)
        if authorization is None:
            raise self.refusal(401, {})
        query.add_unredirected_header("Authorization", authorization)
        with QUERIES.open(query, timeout=30):
            return authorization

    def _token(self, challenge: dict[str, str], basic: str | None) -> str:
        realm = challenge.pop("realm", "")
        if urlsplit(realm).scheme not in ("https", urlsplit(self._request.endpoint).scheme):
            raise self.failed("no_token_service")
        query = urllib.request.Request(f"{realm}?{urlencode(challenge)}")
        if basic is not None:
            query.add_unredirected_header("Authorization", basic)
        with QUERIES.open(query, timeout=30) as answer:
            try:
                body = json.loads(bounded.read(answer, bounded.MIB))
                return f"Bearer {body.get('token') or body['access_token']}"
            except (bounded.TooMuch, ValueError, LookupError, AttributeError) as error:
                raise self.failed("no_token", reason=error) from None


Source = Hub | Registry
