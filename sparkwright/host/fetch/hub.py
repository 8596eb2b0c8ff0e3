"""Queries to a Hugging Face hub: whether it has the commit, and the address of a file.

The token is sent to the hub's own scheme, host and port only.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from functools import partial
from typing import Any
from urllib.parse import quote, urljoin

from sparkwright.host.fetch import web
from sparkwright.host.fetch.errors import Failed, refusal
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.fetch.web import Location, Redirects, Source, Xet, origin
from sparkwright.host.lib import bounded

#: What the hub calls itself in the addresses of Xet tokens, also when a mirror answers.
_HUB = "https://huggingface.co/"
_XET_HASH = re.compile(r"[0-9a-fA-F]{64}")
_XET_TOKENS = re.compile(r'<([^<>]*)>\s*;\s*rel="?xet-auth"?')


class _OnTheHub(Redirects):
    """Follows redirects within the hub (a renamed repository); another is the file's address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if origin(newurl) != origin(req.full_url):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_METADATA = web.opener(_OnTheHub(), bounded.answers(bounded.MIB, 300.0))


class Hub(Source):
    """One repository at one commit."""

    def check(self) -> None:
        """Check endpoint, token, repository and commit before anything is downloaded."""
        request = self._request
        url = f"{request.endpoint}/api/models/{request.repo}/revision/{request.revision}"
        commit = self.ask(partial(self._commit, url))
        if commit != request.revision:
            raise Failed(
                "other_commit", endpoint=request.endpoint, commit=commit,
                revision=request.revision, repo=request.repo,
            )  # fmt: skip

    def direct(self, path: str) -> Location:
        """Return the hub's own address of a file; it may redirect."""
        request = self._request
        url = f"{request.endpoint}/{request.repo}/resolve/{request.revision}/{quote(path)}"
        return Location(url, self._headers(url))

    def locate(self, file: FetchFile) -> Location:
        """Return the address of a large file, after any redirect to a CDN."""
        request, url = self._request, self.direct(file.path).url
        headers, location = self.ask(partial(self._metadata, url), file.path)
        commit = headers.get("X-Repo-Commit")
        if commit and commit != request.revision:
            raise Failed(
                "file_of_commit", endpoint=request.endpoint, file=file.path, commit=commit,
                revision=request.revision,
            )  # fmt: skip
        size = headers.get("X-Linked-Size") or (
            headers.get("Content-Length") if origin(location) == origin(url) else None
        )
        if size and size != str(file.size):
            raise Failed("size_on_hub", file=file.path, found=size, size=file.size)
        return Location(location, self._headers(location), self._xet(url, headers))

    def refusal(self, status: int, headers: Any, path: str | None = None) -> Failed:
        """Explain an HTTP error of the hub.

        The hub answers 401 to a bad token, also for public repositories. A private repository
        looks like a missing one without a token. A gated one answers 401 without a token, and 403
        with the token of an account that has no access.
        """
        request, message = self._request, headers.get("X-Error-Message") or ""
        code, token = headers.get("X-Error-Code") or "", self._secret is not None
        return refusal(
            "hub",
            {"code": code, "message": message, "status": status, "token": token},
            repo=request.repo,
            endpoint=request.endpoint,
            commit=request.revision,
            subject=f"{request.repo}/{path}" if path else request.repo,
            status=status,
            details=f": {message}" if message else "",
        )

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
            if not location.startswith(("http://", "https://")):
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
        if self._secret is not None and origin(url) == origin(self._request.endpoint):
            return {"Authorization": f"Bearer {self._secret}"}
        return {}
