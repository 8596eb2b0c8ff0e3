"""Runs hf_transfer in a process of its own: `python3 -I -S worker.py`.

hf_transfer holds the interpreter lock until it is done and has no timeout, so its parent must be
able to kill it. The job comes as JSON on stdin (an address can contain a signature and a header the
token: neither belongs on a command line). Each line on stdout is a number of bytes that arrived;
the last line on stderr is the error.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


#: Where the parent reads. Whatever the library prints goes among the errors.
_reports = os.fdopen(os.dup(1), "w", buffering=1)


def _report(count: int) -> None:
    _reports.write(f"{count}\n")


def _hf_transfer(job: dict[str, Any]) -> None:
    hf_transfer = importlib.import_module("hf_transfer")
    hf_transfer.download(
        job["url"],
        job["filename"],
        max_files=job["connections"],
        chunk_size=job["chunk_size"],
        parallel_failures=job["connections"],
        max_retries=3,
        headers=job["headers"],
        # It reports the distance of the last byte from the first: one less than it received.
        callback=lambda count: _report(count + 1),
    )


def _main() -> int:
    # Ends with its parent, also after kill -9: no second writer is left behind.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = json.load(sys.stdin)
    if os.getppid() != job["parent"]:
        return 1
    sys.path.insert(0, job["runtime"])
    try:
        _hf_transfer(job)
    except Exception as error:
        print(f"{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
