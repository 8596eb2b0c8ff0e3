"""Measure for two seconds how fast this host receives a file; the data is discarded."""

import subprocess

_SECONDS = 2
#: The requests of HTTP/2 would share a connection, so curl uses HTTP/1.1. No redirect may lead to a
#: file or to FTP.
_CURL = ("curl", "--disable", "--silent", "--fail", "--location", "--http1.1", "--parallel",
         "--proto-redir", "=http,https", "--max-time", str(_SECONDS),
         "--write-out", "%{speed_download}\\n", "--config", "-")  # fmt: skip


def main(request: str) -> int:
    """Run curl with the requested configuration, several transfers at once, and return bytes per
    second; 0 if no data arrived.

    The configuration may contain a token, so curl reads the configuration from standard input:
    every user of the host can see a command's arguments.
    """
    try:
        done = subprocess.run(_CURL, input=request, capture_output=True, text=True,
                              timeout=2 * _SECONDS, check=False)  # fmt: skip
        return round(sum(map(float, done.stdout.split())))
    except (OSError, ValueError, subprocess.TimeoutExpired):  # curl is missing, or older than 2019
        return 0
