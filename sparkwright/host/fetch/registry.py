"""Queries to a container registry: the address of a blob, and a token for it.

The counterpart of hub.py, by the OCI distribution protocol
(https://github.com/opencontainers/distribution-spec) and Docker's token protocol. Credentials are
sent to the registry's own token service only, and a token to the registry only.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from threading import Event, Lock
from typing import Any

from sparkwright.host.fetch import web
from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.fetch.web import Location
from sparkwright.host.lib import bounded

_ACCEPT = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "docker.distribution.manifest.list.v2",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.v2",
    )
)


class Registry:
    """One repository of a registry. ``credentials`` is ``user:password``, or None."""

    #: Tokens of registries are valid for minutes: after HTTP 401 a new one is requested.
    renews = True

    def __init__(self, request: FetchRequest, credentials: str | None, stop: Event) -> None:
        self._request = request
        self._credentials = credentials
        self._stop = stop
        self._lock = Lock()
        self._authorization: str | None = None

    def check(self) -> None:
        """Check that the registry has the manifest and lets this host read it."""
        self._renew()

    def direct(self, path: str) -> Location:
        """Return the address of a blob or manifest; it may redirect."""
        kind = "manifests" if path in self._request.manifests else "blobs"
        base = f"{self._request.endpoint}/v2/{self._request.repo}"
        headers = {"Accept": _ACCEPT} if kind == "manifests" else {}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return Location(f"{base}/{kind}/sha256:{path}", headers)

    def locate(self, file: FetchFile) -> Location:
        """Return the address with a new token."""
        self._renew()
        return self.direct(file.path)

    def refusal(self, status: int, headers: Any, path: str | None = None) -> Failed:
        """Explain an HTTP error: what, why, remedy."""
        return _explain(self._request, status, self._credentials is not None)

    def _renew(self) -> None:
        with self._lock:
            self._authorization = web.answer(
                self._request, self._stop, self._authorize, self.refusal
            )

    def _authorize(self) -> str | None:
        """Request the manifest; follow the challenge if there is one."""
        manifest = f"sha256:{self._request.revision}"
        url = f"{self._request.endpoint}/v2/{self._request.repo}/manifests/{manifest}"
        query = urllib.request.Request(url, headers={"Accept": _ACCEPT}, method="HEAD")
        try:
            with web.QUERIES.open(query, timeout=30):
                return None
        except urllib.error.HTTPError as error:
            challenge = error.headers.get("WWW-Authenticate", "")
            if error.code != 401 or not challenge:
                raise
            error.close()
        scheme, _, rest = challenge.partition(" ")
        basic = None
        if self._credentials is not None:
            basic = "Basic " + base64.b64encode(self._credentials.encode()).decode()
        if scheme.lower() == "basic":
            authorization = basic
        else:
            authorization = self._token(dict(re.findall(r'(\w+)="([^"]*)"', rest)), basic)
        if authorization is None:
            raise _explain(self._request, 401, False)
        query.add_unredirected_header("Authorization", authorization)
        with web.QUERIES.open(query, timeout=30):
            return authorization

    def _token(self, challenge: dict[str, str], basic: str | None) -> str:
        realm = challenge.pop("realm", "")
        if not realm.startswith(("https://", "http://")):
            raise Failed(
                f"{self._request.endpoint} requires a token, but its WWW-Authenticate header has "
                "no realm with the address of a token service."
            )
        query = urllib.request.Request(f"{realm}?{urllib.parse.urlencode(challenge)}")
        if basic is not None:
            query.add_unredirected_header("Authorization", basic)
        with web.QUERIES.open(query, timeout=30) as answer:
            try:
                body = json.loads(bounded.read(answer, bounded.MIB))
                return f"Bearer {body.get('token') or body['access_token']}"
            except (bounded.TooMuch, ValueError, LookupError, AttributeError) as error:
                raise Failed(
                    f"The token service of {self._request.endpoint} answers with no token "
                    f"({error}). Is it a registry?"
                ) from None


def _explain(request: FetchRequest, status: int, has_credentials: bool) -> Failed:
    image = f"{request.endpoint}/{request.repo}"
    if status in {401, 403}:
        remedy = (
            "The account may not read it: ask its owner for access, or log in to another account"
            if has_credentials
            else "Log in ('docker login' on the controller) and set registry_auth_file to the "
            "config.json that it writes"
        )
        return Failed(f"The registry denies access to {image} (HTTP {status}). {remedy}.")
    if status == 404:
        return Failed(
            f"{image} has no sha256:{request.revision}. It was removed, or the lock has the image "
            "of another registry: lock it again."
        )
    return Failed(f"{request.endpoint} answers HTTP {status} for {request.repo}.")
