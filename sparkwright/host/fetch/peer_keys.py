"""The keys of a host that serves: one for each run, read when a request names the run."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sparkwright.host.fetch import peer_auth, peer_files

#: Seconds after which a run's key counts no more: the longest download ends before.
LIFE = 2 * 86400
_LARGEST = 128


class Keys:
    """A directory with one file per run."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def are_there(self) -> bool:
        """Whether there is such a directory still."""
        return Path(self._directory).is_dir()

    def of(self, run: str) -> str | None:
        """A run's key; None if there is none, or it is too old."""
        if not peer_auth.RUN.fullmatch(run):
            return None
        with suppress(OSError):
            # Both times are this host's: no other clock matters.
            age = time.time() - Path(self._directory, run).stat().st_mtime
            if age < LIFE:
                return (peer_files.text(self._directory, (run,), _LARGEST) or "").strip() or None
        return None
