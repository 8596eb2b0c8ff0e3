"""The hub or registry of a request, connected to when it is needed for the first time."""

from __future__ import annotations

from threading import Event, Lock

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.hub import Hub, read_token
from sparkwright.host.fetch.registry import Registry
from sparkwright.host.fetch.request import FetchRequest


class Upstream:
    """A host that gets everything from its peers queries nobody else."""

    def __init__(self, request: FetchRequest, stop: Event) -> None:
        self._request = request
        self._stop = stop
        self._lock = Lock()
        self._connected: Hub | Registry | None = None

    def connect(self) -> Hub | Registry:
        """Return the source, once it is seen to have the commit and to let this host read it."""
        with self._lock:
            if self._connected is None:
                if self._request.offline:
                    raise Failed(
                        f"{self._request.repo} is not complete in the bundle, and this run uses "
                        "nothing else. Create the bundle again: sparkwright bundle."
                    )
                kind = Registry if self._request.source == "registry" else Hub
                source = kind(self._request, read_token(self._request), self._stop)
                source.check()
                self._connected = source
            return self._connected
