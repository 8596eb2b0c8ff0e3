"""Queries to a Hugging Face hub: whether it has the commit, and the address of a file.

The token is sent to the hub's own scheme, host and port only.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from sparkwright.host.fetch import web
from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.fetch.web import Location, Redirects, Xet, origin
from sparkwright.host.lib import bounded

#: What the hub calls itself in the addresses of Xet tokens, also when a mirror answers.
_HUB = "https://huggingface.co/"
_XET_HASH = re.compile(r"[0-9a-fA-F]{64}")
_XET_TOKENS = re.compile(r'<([^<>]*)>\s*;\s*rel="?xet-auth"?')


def read_token(request: FetchRequest) -> str | None:
    """Return the token for the endpoint, or None. It comes from a file, never from argv."""
    if request.token_file is None:
        return None
    try:
        token = Path(request.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Failed(
            f"Cannot read the token file {request.token_file}: {error.strerror}."
        ) from error
    if not token:
        return None
    if urlsplit(request.endpoint).scheme != "https" and not request.allow_token_over_http:
        log(f"the token is not sent: {request.endpoint} is not https")
        return None
    return token


def explain(
    request: FetchRequest,
    status: int,
    headers: Any,
    has_token: bool,
    path: str | None = None,
) -> Failed:
    """Turn an HTTP error of the hub into one message: what, why, remedy.

    The hub answers 401 to a bad token, also for public repositories. A private repository looks
    like a missing one without a token. A gated one answers 401 without a token, and 403 with the
    token of an account that has no access.
    """
    code, message = headers.get("X-Error-Code") or "", headers.get("X-Error-Message") or ""
    repo, endpoint, commit = request.repo, request.endpoint, request.revision
    what = f"{repo}/{path}" if path else repo
    if code == "GatedRepo":
        if has_token:
            return Failed(
                f"{repo} is gated and the token's account has no access to it. Log in with that "
                f"account, accept the licence at {endpoint}/{repo} and run again, or set HF_TOKEN "
                "to a token of an account that has access."
            )
        return Failed(
            f"{repo} is gated and no token was sent. Accept its licence at {endpoint}/{repo}, "
            f"create a read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RevisionNotFound":
        return Failed(
            f"{repo} has no commit {commit} at {endpoint}. It was removed, or the lock has the "
            "commit of another repository: lock the model again."
        )
    if code == "EntryNotFound":
        return Failed(
            f"{what} does not exist at commit {commit} of {endpoint}. The list of files is from "
            "another commit: lock the model again."
        )
    if message == "Access to this resource is disabled.":
        return Failed(f"{endpoint} has disabled {repo}. Choose another repository.")
    if status == 401 and has_token and code != "RepoNotFound":
        return Failed(
            f"{endpoint} rejects the token (HTTP 401). It is mistyped, expired or revoked: create "
            f"a read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RepoNotFound" or status in {401, 404}:
        if has_token:
            return Failed(
                f"{endpoint} has no {what}, or the token's account has no access to it. Check the "
                "spelling; for a private repository set HF_TOKEN to a token that can read it."
            )
        return Failed(
            f"{endpoint} has no {what}. Check the spelling; without a token a private repository "
            "looks like a missing one: set HF_TOKEN to a token that can read it."
        )
    details = f": {message}" if message else ""
    if status == 403:
        return Failed(
            f"{endpoint} denies access to {what} (HTTP 403{details}). Give the token read access "
            "to this repository, or set HF_TOKEN to a token that has it."
        )
    return Failed(f"{endpoint} answers HTTP {status} for {what}{details}.")


class _OnTheHub(Redirects):
    """Follows redirects within the hub (a renamed repository); another is the file's address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if origin(newurl) != origin(req.full_url):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_METADATA = web.opener(_OnTheHub(), bounded.answers(bounded.MIB, 300.0))


class Hub:
    """One repository at one commit, queried with bounded retries."""

    renews = False

    def __init__(self, request: FetchRequest, token: str | None, stop: Event) -> None:
        self._request = request
        self._token = token
        self._stop = stop

    def check(self) -> None:
        """Check endpoint, token, repository and commit before anything is downloaded."""
        request = self._request
        url = f"{request.endpoint}/api/models/{request.repo}/revision/{request.revision}"
        refusal = partial(self.refusal, path=None)
        commit = web.answer(request, self._stop, partial(self._commit, url), refusal)
        if commit != request.revision:
            raise Failed(
                f"{request.endpoint} returns commit {commit} for {request.revision} of "
                f"{request.repo}: it is not a valid hub."
            )

    def direct(self, path: str) -> Location:
        """Return the hub's own address of a file; it may redirect."""
        request = self._request
        url = f"{request.endpoint}/{request.repo}/resolve/{request.revision}/{quote(path)}"
        return Location(url, self._headers(url))

    def locate(self, file: FetchFile) -> Location:
        """Return the address of a large file, after any redirect to a CDN."""
        url = self.direct(file.path).url
        headers, location = web.answer(
            self._request,
            self._stop,
            partial(self._metadata, url),
            partial(self.refusal, path=file.path),
        )
        commit = headers.get("X-Repo-Commit")
        if commit and commit != self._request.revision:
            raise Failed(
                f"{self._request.endpoint} serves {file.path} of commit {commit} instead of "
                f"{self._request.revision}: it is not a valid hub."
            )
        size = headers.get("X-Linked-Size") or (
            headers.get("Content-Length") if origin(location) == origin(url) else None
        )
        if size and size != str(file.size):
            raise Failed(
                f"{file.path} has {size} bytes on the hub, but {file.size} in the lock. "
                "Nothing was fetched; lock the model again if you want the new file."
            )
        return Location(location, self._headers(location), self._xet(url, headers))

    def refusal(self, status: int, headers: Any, path: str | None) -> Failed:
        """Explain an HTTP error of the hub."""
        return explain(self._request, status, headers, self._token is not None, path)

    def _commit(self, url: str) -> object:
        query = urllib.request.Request(url, headers=self._headers(url))
        with web.QUERIES.open(query, timeout=30) as reply:
            return json.loads(reply.read())["sha"]

    def _metadata(self, url: str) -> tuple[Any, str]:
        """Return the headers that the hub has for a file, and the file's address."""
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
            if urlsplit(location).scheme not in {"http", "https"}:
                raise ValueError("a file's address that is not http(s)") from None
            return error.headers, location

    def _xet(self, url: str, headers: Any) -> Xet | None:
        """Return a file in Xet storage; None if it is not there."""
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
        """Return what may be sent to an address: the token to the hub only."""
        if self._token is not None and origin(url) == origin(self._request.endpoint):
            return {"Authorization": f"Bearer {self._token}"}
        return {}
