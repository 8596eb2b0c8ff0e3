"""Replicas that have read the beginning of a request before, and may have it in their cache."""

from __future__ import annotations

import hashlib
import os

#: Lengths of beginnings in bytes, the longest first; beginnings that are remembered.
LENGTHS = (32768, 8192, 2048, 512)
_MOST = 8192


class Prefixes:
    """Names of replicas by digests of beginnings. No text is kept, and a digest means nothing to
    another process."""

    def __init__(self) -> None:
        self._salt = os.urandom(16)
        self._servers: dict[bytes, str] = {}

    def digests(self, pool: str, start: bytes) -> list[bytes]:
        """Digests of the beginnings of a request to a pool, the longest first."""
        whole = hashlib.blake2b(pool.encode(), key=self._salt, digest_size=16)
        result: list[bytes] = []
        done = 0
        for length in reversed(LENGTHS):
            if len(start) >= length:
                whole.update(start[done:length])
                done = length
                result.insert(0, whole.digest())
        return result

    def server(self, digests: list[bytes]) -> str:
        """The replica that has read the longest of these beginnings; empty without one."""
        return next((self._servers[item] for item in digests if item in self._servers), "")

    def remember(self, digests: list[bytes], server: str) -> None:
        """Remember that a replica has read these; the oldest are forgotten."""
        for digest in digests if server else ():
            self._servers.pop(digest, None)
            self._servers[digest] = server
        while len(self._servers) > _MOST:
            del self._servers[next(iter(self._servers))]
