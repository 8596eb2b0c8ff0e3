"""The hub or registry that a request names, asked for the first time when it is needed.

A host that gets everything from its peers asks nobody else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.hub import Hub, Location, read_token
from sparkwright.host.fetch.registry import Registry
from sparkwright.host.fetch.request import File, Request


class Upstream:
    """One repository at one commit or digest; made and checked at most once."""

    def __init__(self, request: Request, runtime: Path | None, stop: Event) -> None:
        self._request = request
        self._runtime = runtime
        self._stop = stop
        self._lock = Lock()
        self._made: Hub | Registry | None = None

    @property
    def renews(self) -> bool:
        """Whether a refusal may only mean that a token has run out."""
        return self._source.renews

    def check(self) -> None:
        """See that it is there, has the commit and lets us read it. Asked once."""
        assert self._source is not None

    def files(self) -> tuple[File, ...]:
        """Return the commit's files as the hub lists them."""
        source = self._source
        assert isinstance(source, Hub), "a registry's files come with the request"
        return source.files()

    def direct(self, path: str) -> Location:
        """Return the own address of a file; it may redirect."""
        return self._source.direct(path)

    def locate(self, file: File) -> Location:
        """Return where a file's bytes are, asked anew."""
        return self._source.locate(file)

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """Explain a refusal."""
        return self._source.refusal(status, headers, path)

    @property
    def _source(self) -> Hub | Registry:
        with self._lock:
            if self._made is None:
                if self._request.offline:
                    raise Failed(
                        f"{self._request.repo} is not whole in what was brought along, and this "
                        "run asks nobody outside. Make the bundle anew: sparkwright bundle."
                    )
                source = self._connect()
                source.check()
                self._made = source
            return self._made

    def _connect(self) -> Hub | Registry:
        secret = read_token(self._request)
        if self._request.source == "registry":
            return Registry(self._request, secret, self._stop)
        if self._runtime is not None and str(self._runtime) not in sys.path:
            sys.path.insert(0, str(self._runtime))
        return Hub(self._request, secret, self._stop)
