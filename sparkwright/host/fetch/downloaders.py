"""Libraries that download a large file, each in a worker process that is watched from here.

hf_transfer fetches an empty part by many ranges at once; hf_xet fetches the missing ranges of a
part from the hub's Xet storage. They decide nothing: whatever they leave undone shows as holes in
the part, and ranges.py fetches it.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

from sparkwright.host.fetch.errors import Temporary
from sparkwright.host.fetch.request import PAGE, FetchRequest
from sparkwright.host.fetch.web import Location

_WORKER = Path(__file__).with_name("worker.py")
#: These threads wait, they do not compute. With two of them the chunks of hf_transfer lose their
#: order: the start of a file may then arrive last, and hashing can't keep up.
_THREADS = {"hf_transfer": "1", "Xet": "2"}
#: Both report whole blocks only: hf_transfer chunks, of which every connection fetches one, and
#: hf_xet up to 64 MiB of a xorb. On a slow connection a block takes minutes; as long as the host
#: receives this many bytes per second, that is no stall, up to so many times the stall limit.
_SLOW = 10_000
_STALLS = 5


class Libraries:
    """Starts the workers of one run.

    lock: a descriptor that every worker keeps open, so that the run's lock is held until it ends.
    """

    def __init__(self, request: FetchRequest, runtime: Path, stop: Event, lock: int) -> None:
        self._request = request
        self._runtime = runtime
        self._stop = stop
        self._lock = lock

    def fetch(
        self, name: str, location: Location, part: Path, size: int,
        missing: list[tuple[int, int]], connections: int, count: Callable[[int], None],
    ) -> str | None:  # fmt: skip
        """Fill the missing ranges of a part by hf_transfer, which takes an empty part only, or Xet.

        Returns None, or why it ended early.
        """
        job: dict[str, Any] = {
            "downloader": name,
            "connections": connections,
            "chunk_size": self._request.chunk_size,
        }
        if location.xet is not None and name == "Xet":
            job |= asdict(location.xet)
            # The same bound as hf_transfer's, over both large files of a time.
            memory = connections * self._request.chunk_size
            job |= {"filename": str(part), "size": size, "ranges": missing, "page": PAGE}
            return self._run(job | {"memory": memory}, count)
        # It deletes its file when it fails, so it gets a second name of the part.
        link = part.with_name(part.name + ".hf_transfer")
        link.unlink(missing_ok=True)
        try:
            link.hardlink_to(part)
        except OSError as error:
            return f"the file system has no hard links: {error.strerror}"
        try:
            job |= {"url": location.url, "headers": location.headers, "filename": str(link)}
            return self._run(job, count)
        finally:
            link.unlink(missing_ok=True)

    def _run(self, job: dict[str, Any], count: Callable[[int], None]) -> str | None:
        document = {**job, "runtime": str(self._runtime), "parent": os.getpid()}
        # hf_xet wants a folder of its own, and a job may not write to the user's home.
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as cache:
            worker = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(self._lock,),
                env={
                    "TOKIO_WORKER_THREADS": _THREADS[job["downloader"]],
                    "HF_XET_CACHE": cache,
                    **os.environ,
                },
            )
            try:
                reason = self._watch(worker, json.dumps(document).encode(), count)
            finally:
                worker.kill()
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    if pipe is not None:
                        pipe.close()
            if reason is not None or worker.returncode == 0:
                return reason
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            return _without_queries(lines[-1]) if lines else f"exit code {worker.returncode}"

    def _watch(
        self, worker: subprocess.Popen[bytes], job: bytes, count: Callable[[int], None]
    ) -> str | None:
        """Send a worker its job and count what it reports. Returns why it must be ended, if so."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(job)
            worker.stdin.close()
        except BrokenPipeError:
            return None
        os.set_blocking(worker.stdout.fileno(), False)
        stall = self._request.stall
        rest, last = b"", time.monotonic()
        checked, received = last, _received()
        with selectors.DefaultSelector() as selector:
            selector.register(worker.stdout, selectors.EVENT_READ)
            while True:
                if self._stop.is_set():
                    raise Temporary("stopped")
                if selector.select(0.25):
                    output = os.read(worker.stdout.fileno(), 65536)
                    if not output:
                        worker.wait()
                        return None
                    *lines, rest = (rest + output).split(b"\n")
                    for line in lines:
                        count(int(line))
                    last = time.monotonic()
                    checked, received = last, _received()
                elif (now := time.monotonic()) - checked > stall:
                    gained = _received() - received
                    if gained < _SLOW * (now - checked):
                        return f"no chunk arrived for {stall:g} s"
                    if now - last > _STALLS * stall:
                        return f"no chunk arrived for {_STALLS * stall:g} s"
                    checked, received = now, received + gained


def _received() -> int:
    """Return the bytes that this host has received on all its interfaces."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[0]) for line in lines)


def _without_queries(text: str) -> str:
    """Return an error without the queries of addresses, which may be signatures."""
    return re.sub(r"\?[^\s)\"']*", "?…", text)[:300]
