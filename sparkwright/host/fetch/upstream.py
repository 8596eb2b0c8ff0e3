"""The hub or registry of a request, connected to when it is needed for the first time.

A host that gets everything from its peers queries nobody else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.hub import Hub, Location, read_token
from sparkwright.host.fetch.registry import Registry
from sparkwright.host.fetch.request import FetchFile, FetchRequest


class Upstream:
    """One repository at one commit or digest; connected to and checked at most once."""

    def __init__(self, request: FetchRequest, runtime: Path | None, stop: Event) -> None:
        self._request = request
        self._runtime = runtime
        self._stop = stop
        self._lock = Lock()
        self._connected: Hub | Registry | None = None

    @property
    def renews(self) -> bool:
        """Whether HTTP 401 may only mean that a token has expired."""
        return self._source.renews

    def check(self) -> None:
        """Check once that the source is reachable, has the commit and lets this host read it."""
        assert self._source is not None

    def files(self) -> tuple[FetchFile, ...]:
        """Return the commit's files as the hub lists them."""
        source = self._source
        assert isinstance(source, Hub), "a registry's files are in the request"
        return source.files()

    def direct(self, path: str) -> Location:
        """Return the source's own address of a file; it may redirect."""
        return self._source.direct(path)

    def locate(self, file: FetchFile) -> Location:
        """Return the current address of a file."""
        return self._source.locate(file)

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """Explain an HTTP error."""
        return self._source.refusal(status, headers, path)

    @property
    def _source(self) -> Hub | Registry:
        with self._lock:
            if self._connected is None:
                if self._request.offline:
                    raise Failed(
                        f"{self._request.repo} is not complete in the bundle, and this run uses "
                        "nothing else. Create the bundle again: sparkwright bundle."
                    )
                source = self._connect()
                source.check()
                self._connected = source
            return self._connected

    def _connect(self) -> Hub | Registry:
        secret = read_token(self._request)
        if self._request.source == "registry":
            return Registry(self._request, secret, self._stop)
        if self._runtime is not None and str(self._runtime) not in sys.path:
            sys.path.insert(0, str(self._runtime))
        return Hub(self._request, secret, self._stop)
