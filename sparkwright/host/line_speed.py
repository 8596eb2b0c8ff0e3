"""Measures how fast this host receives a file, for two seconds; keeps nothing of it."""

from __future__ import annotations

import subprocess

_SECONDS = 2
#: Without HTTP/2, whose requests share a connection; no redirect leads to a file or to FTP.
_CURL = ("curl", "--disable", "--silent", "--fail", "--location", "--http1.1", "--parallel",
         "--proto-redir", "=http,https", "--max-time", str(_SECONDS),
         "--write-out", "%{speed_download}\\n", "--config", "-")  # fmt: skip


def main(request: str) -> int:
    """Have curl receive what its configuration names, side by side, and answer bytes per second: 0
    if nothing came.

    A token is in the configuration, and not among arguments, which every user of the host can see.
    """
    try:
        done = subprocess.run(_CURL, input=request, capture_output=True, text=True,
                              timeout=2 * _SECONDS, check=False)  # fmt: skip
        return round(sum(map(float, done.stdout.split())))
    except (OSError, ValueError, subprocess.TimeoutExpired):  # no curl, or one of before 2019
        return 0
