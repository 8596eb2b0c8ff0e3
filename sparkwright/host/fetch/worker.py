"""Run hf_transfer or hf_xet in a separate process: `python3 -I -S worker.py`.

hf_transfer holds the interpreter lock until it is done and has no timeout, so its parent must be
able to kill it; the threads and memory of hf_xet end with their process. The job comes as JSON on
stdin (an address can contain a signature, and a header can contain the token: neither belongs on a
command line). Each line on stdout is a number of bytes that arrived; the last line on stderr is the
error.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


#: The descriptor that the parent reads. A library's own output goes to stderr, such as hf_xet's
#: warning if it can't write its log.
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
        # The library reports the distance between the first and the last byte: one less than the
        # number of received bytes.
        callback=lambda count: _report(count + 1),
    )


def _xet(job: dict[str, Any]) -> None:
    hf_xet = importlib.import_module("hf_xet")
    # Use the bound of hf_transfer, in total for both large files that are fetched at once.
    memory = job["connections"] * job["chunk_size"]
    config = hf_xet.XetConfig().with_config(
        {
            # No telemetry, and less memory than the default of 2 GB: the host may be serving.
            "telemetry.enabled": False,
            "reconstruction.download_buffer_size": memory,
            "reconstruction.download_buffer_perfile_size": memory,
            "reconstruction.download_buffer_limit": memory,
            "reconstruction.min_prefetch_buffer": memory,
            "reconstruction.min_reconstruction_fetch_size": memory,
            # Ranges that fail here are fetched over plain HTTP, which has its own retries.
            "client.retry_max_attempts": 2,
            "client.retry_base_delay": "1s",
            "client.ac_max_download_concurrency": job["connections"],
            "client.ac_initial_download_concurrency": job["connections"],
        }
    )
    group = hf_xet.XetSession(config).new_download_stream_group(
        token_refresh_url=job["refresh_url"], token_refresh_headers=job["headers"]
    )
    info = hf_xet.XetFileInfo(job["hash"], job["size"])
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(job["filename"], flags), "wb", buffering=0) as part:
        for start, end in job["ranges"]:
            stream = group.download_stream(info, start=start, end=end)
            _write(part.fileno(), start, end, job["page"], stream)


def _write(part: int, start: int, end: int, page: int, stream: Any) -> None:
    """Write a range in order and in whole pages, as holes.py requires."""
    at, rest = start, b""
    for piece in stream:
        rest += piece
        whole = len(rest) if at + len(rest) == end else len(rest) - len(rest) % page
        written = 0
        while written < whole:
            written += os.pwrite(part, memoryview(rest)[written:whole], at + written)
        _report(len(piece))
        at, rest = at + whole, rest[whole:]
    if at != end:
        raise ValueError(f"the stream ended at byte {at} of {end}")


def _main() -> int:
    # The worker ends with its parent, even after kill -9, so that no second writer is left.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = json.load(sys.stdin)
    if os.getppid() != job["parent"]:
        return 1
    sys.path.insert(0, job["runtime"])
    try:
        {"hf_transfer": _hf_transfer, "Xet": _xet}[job["downloader"]](job)
    except Exception as error:
        print(f"{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
