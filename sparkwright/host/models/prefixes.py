"""Replicas that have read the beginning of a request before, and may have it in their caches."""

import hashlib
import os

#: Lengths of beginnings in bytes, the longest first, and the number of remembered beginnings.
LENGTHS = (32768, 8192, 2048, 512)
_MOST = 8192


class Prefixes:
    """Replica names by digests of prompt beginnings. No text is kept, and a digest means nothing to
    another process.
    """

    def __init__(self) -> None:
        self._salt = os.urandom(16)
        self._servers: dict[bytes, str] = {}

    def digests(self, pool: str, start: bytes) -> list[bytes]:
        """Return digests of a request's beginnings for a pool, the longest beginning first."""
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
        """Return the replica that has read the longest of these beginnings; empty without a
        replica.
        """
        return next((self._servers[item] for item in digests if item in self._servers), "")

    def remember(self, digests: list[bytes], server: str) -> None:
        """Remember the replica that has read these beginnings; the oldest entries are dropped."""
        for digest in digests if server else ():
            self._servers.pop(digest, None)
            self._servers[digest] = server
        while len(self._servers) > _MOST:
            del self._servers[next(iter(self._servers))]
