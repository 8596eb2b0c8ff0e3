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
from threading import Lock
from typing import Any

from sparkwright.host.fetch import web
from sparkwright.host.fetch.errors import Failed, refusal
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.fetch.web import Location, Source
from sparkwright.host.lib import bounded

_ACCEPT = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)


class Registry(Source):
    """One repository of a registry; its secret is ``user:password``."""

    renews = True
    _lock = Lock()
    _authorization: str | None = None

    def check(self) -> None:
        """Check that the registry has the manifest and lets this host read it."""
        with self._lock:
            self._authorization = self.ask(self._authorize)

    def direct(self, path: str) -> Location:
        """Return the address of a blob or manifest; it may redirect."""
        manifest = path in self._request.manifests
        headers = {"Accept": _ACCEPT} if manifest else {}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return Location(self._url("manifests" if manifest else "blobs", path), headers)

    def locate(self, file: FetchFile) -> Location:
        """Return the address with a new token."""
        self.check()
        return self.direct(file.path)

    def refusal(self, status: int, headers: Any, path: str | None = None) -> Failed:
        """Explain an HTTP error of the registry."""
        return self._refusal(status, self._secret is not None)

    def _refusal(self, status: int, has_account: bool) -> Failed:
        request, answer = self._request, {"status": status, "token": has_account}
        facts = {"endpoint": request.endpoint, "repo": request.repo, "commit": request.revision}
        return refusal("registry", answer, status=status, **facts)

    def _url(self, kind: str, digest: str) -> str:
        return f"{self._request.endpoint}/v2/{self._request.repo}/{kind}/sha256:{digest}"

    def _authorize(self) -> str | None:
        """Request the manifest; follow the challenge if there is one."""
        url = self._url("manifests", self._request.revision)
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
        if self._secret is not None:
            basic = "Basic " + base64.b64encode(self._secret.encode()).decode()
        if scheme.lower() == "basic":
            authorization = basic
        else:
            authorization = self._token(dict(re.findall(r'(\w+)="([^"]*)"', rest)), basic)
        if authorization is None:
            raise self._refusal(401, False)
        query.add_unredirected_header("Authorization", authorization)
        with web.QUERIES.open(query, timeout=30):
            return authorization

    def _token(self, challenge: dict[str, str], basic: str | None) -> str:
        endpoint, realm = self._request.endpoint, challenge.pop("realm", "")
        if not realm.startswith(("https://", "http://")):
            raise Failed("no_token_service", endpoint=endpoint)
        query = urllib.request.Request(f"{realm}?{urllib.parse.urlencode(challenge)}")
        if basic is not None:
            query.add_unredirected_header("Authorization", basic)
        with web.QUERIES.open(query, timeout=30) as answer:
            try:
                body = json.loads(bounded.read(answer, bounded.MIB))
                return f"Bearer {body.get('token') or body['access_token']}"
            except (bounded.TooMuch, ValueError, LookupError, AttributeError) as error:
                raise Failed("no_token", endpoint=endpoint, reason=error) from None
