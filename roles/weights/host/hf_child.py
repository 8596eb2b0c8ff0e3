"""Runs hf_transfer.download() in a process of its own: `python3 -I -S hf_child.py`.

hf_transfer holds the interpreter lock until it is done and knows no timeout, so whoever starts
it must be able to end it. The arguments come as JSON on stdin (an address can carry a signature
and a header the token, neither belongs on a command line); every finished chunk is a line with
its bytes on stdout; the last line on stderr says what went wrong.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _main() -> int:
    # Ends with its parent, kill -9 included: no second writer is left behind.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    job = json.load(sys.stdin)
    if os.getppid() != job["parent"]:
        return 1
    sys.path.insert(0, job["runtime"])
    hf_transfer = importlib.import_module("hf_transfer")

    def chunk_done(count: int) -> None:
        sys.stdout.write(f"{count}\n")
        sys.stdout.flush()

    try:
        hf_transfer.download(
            job["url"],
            job["filename"],
            max_files=job["connections"],
            chunk_size=job["chunk_size"],
            parallel_failures=job["connections"],
            max_retries=3,
            headers=job["headers"],
            callback=chunk_done,
        )
    except Exception as error:
        print(f"{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
