"""What is asked of a container registry: where a blob's bytes are, and a token for it.

The same questions as to a hub (hub.py), by the OCI distribution protocol
(https://github.com/opencontainers/distribution-spec) and Docker's token protocol. Credentials go
to the registry's own token service only, and a token to the registry alone.
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

from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.hub import Location, pause, retry_after, transient
from sparkwright.host.fetch.request import File, Request

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

    #: Tokens of registries live for minutes: a 401 in the middle asks for a new one.
    renews = True

    def __init__(self, request: Request, credentials: str | None, stop: Event) -> None:
        self._request = request
        self._credentials = credentials
        self._stop = stop
        self._lock = Lock()
        self._authorization: str | None = None

    def check(self) -> None:
        """See that the registry has the manifest and lets us read it."""
        self._renew()

    def direct(self, path: str) -> Location:
        """Return the address of a blob or manifest; it may redirect."""
        kind = "manifests" if path in self._request.manifests else "blobs"
        base = f"{self._request.endpoint}/v2/{self._request.repo}"
        headers = {"Accept": _ACCEPT} if kind == "manifests" else {}
        if self._authorization:
            headers["Authorization"] = self._authorization
        return Location(f"{base}/{kind}/sha256:{path}", headers)

    def locate(self, file: File) -> Location:
        """Return the address anew, with a token that is good for some minutes."""
        self._renew()
        return self.direct(file.path)

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """Explain a refusal: what, why, remedy."""
        return _explain(self._request, status, self._credentials is not None)

    def _renew(self) -> None:
        with self._lock:
            attempt = 0
            while True:
                try:
                    self._authorization = self._authorize()
                    return
                except urllib.error.HTTPError as error:
                    error.close()
                    if not transient(error.code):
                        raise _explain(
                            self._request, error.code, self._credentials is not None
                        ) from None
                    why, asked = f"answers {error.code}", error.headers.get("Retry-After")
                except OSError as error:
                    why, asked = f"is out of reach ({getattr(error, 'reason', error)})", None
                if attempt >= self._request.retries:
                    raise Temporary(
                        f"{self._request.endpoint} {why}, after {attempt + 1} tries. Check the "
                        "host's line and the registry, then run again: what was fetched is kept."
                    )
                pause(self._request, attempt, retry_after(asked), self._stop)
                attempt += 1

    def _authorize(self) -> str | None:
        """Ask for the manifest; follow the challenge when there is one."""
        manifest = f"sha256:{self._request.revision}"
        url = f"{self._request.endpoint}/v2/{self._request.repo}/manifests/{manifest}"
        wanted = urllib.request.Request(url, headers={"Accept": _ACCEPT}, method="HEAD")
        try:
            with urllib.request.urlopen(wanted, timeout=30):
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
        wanted.add_unredirected_header("Authorization", authorization)
        with urllib.request.urlopen(wanted, timeout=30):
            return authorization

    def _token(self, challenge: dict[str, str], basic: str | None) -> str:
        realm = challenge.pop("realm", "")
        if not realm.startswith(("https://", "http://")):
            raise Failed(f"{self._request.endpoint} names no place to get a token from.")
        asked = urllib.request.Request(f"{realm}?{urllib.parse.urlencode(challenge)}")
        if basic is not None:
            asked.add_unredirected_header("Authorization", basic)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            body = json.load(answer)
        return f"Bearer {body.get('token') or body.get('access_token')}"


def _explain(request: Request, status: int, has_credentials: bool) -> Failed:
    image = f"{request.endpoint}/{request.repo}"
    if status in {401, 403}:
        remedy = (
            "the account may not read it: ask its owner, or log in as another"
            if has_credentials
            else "log in ('docker login' on the controller) and set registry_auth_file to the "
            "config.json that it writes"
        )
        return Failed(f"{image} may not be read ({status}). Remedy: {remedy}.")
    if status == 404:
        return Failed(
            f"{image} has no sha256:{request.revision}. It was removed, or the lock names another "
            "registry's image: lock it again."
        )
    return Failed(f"{request.endpoint} answers {status} for {request.repo}.")
