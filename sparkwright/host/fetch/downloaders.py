"""Libraries that move a large file's bytes, each in a child that is watched from outside.

hf_transfer fetches an empty part by many ranges at once; hf_xet fetches what a part lacks from the
hub's Xet storage. They never decide anything: whatever one leaves undone, the part's holes say what
is missing, and ranges.py fetches that.
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
from pathlib import Path
from threading import Event
from typing import Any

from sparkwright.host.fetch.errors import Temporary
from sparkwright.host.fetch.hub import Location
from sparkwright.host.fetch.request import PAGE, Request

_CHILD = Path(__file__).with_name("worker.py")
#: Threads for waiting, not for work. With a second one hf_transfer's queue of chunks loses its
#: order: the start of a file may then come last, and hashing can't follow.
_THREADS = {"hf_transfer": "1", "xet": "2"}
#: Both tell of whole blocks only: hf_transfer of its chunks, of which every connection fetches one,
#: and hf_xet of up to 64 MiB of a xorb. On a slow line that takes minutes, in which the host
#: receives this many bytes per second at least; after so many stalls it is no slow line any more.
_TRICKLE = 10_000
_STALLS = 5


class Mover:
    """What the children of one run share.

    lock: a descriptor that a child keeps open, so that the run's lock lasts as long as it.
    """

    def __init__(self, request: Request, runtime: Path, stop: Event, lock: int) -> None:
        self._request = request
        self._runtime = runtime
        self._stop = stop
        self._lock = lock

    def hf_transfer(
        self, location: Location, part: Path, connections: int, count: Callable[[int], None]
    ) -> str | None:
        """Fill an empty part of full length. Returns None, or why it ended early."""
        # It deletes its file when it fails, so it is given a second name of the part.
        link = part.with_name(part.name + ".hf_transfer")
        link.unlink(missing_ok=True)
        try:
            link.hardlink_to(part)
        except OSError as error:
            return f"the file system has no hard links ({error.strerror})"
        try:
            job = {
                "mover": "hf_transfer",
                "url": location.url,
                "filename": str(link),
                "connections": connections,
                "chunk_size": self._request.chunk_size,
                "headers": location.headers,
            }
            return self._run(job, count)
        finally:
            link.unlink(missing_ok=True)

    def xet(
        self,
        location: Location,
        part: Path,
        size: int,
        missing: list[tuple[int, int]],
        connections: int,
        count: Callable[[int], None],
    ) -> str | None:
        """Fill the missing ranges of a part. Returns None, or why it ended early."""
        assert location.xet is not None
        job = {
            "mover": "xet",
            "hash": location.xet.hash,
            "size": size,
            "refresh_url": location.xet.refresh_url,
            "headers": location.xet.headers,
            "filename": str(part),
            "ranges": missing,
            "page": PAGE,
            "connections": connections,
            # Both large files of a run together hold what hf_transfer would.
            "memory": connections * self._request.chunk_size,
        }
        return self._run(job, count)

    def _run(self, job: dict[str, Any], count: Callable[[int], None]) -> str | None:
        document = {**job, "runtime": str(self._runtime), "parent": os.getpid()}
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(self._lock,),
                env={"TOKIO_WORKER_THREADS": _THREADS[job["mover"]], **os.environ},
            )
            try:
                ended = self._watch(child, json.dumps(document).encode(), count)
            finally:
                child.kill()
                child.wait()
                for pipe in (child.stdin, child.stdout):
                    if pipe is not None:
                        pipe.close()
            if ended is not None or child.returncode == 0:
                return ended
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines()
            return _plain(words[-1]) if words else f"exit {child.returncode}"

    def _watch(
        self, child: subprocess.Popen[bytes], job: bytes, count: Callable[[int], None]
    ) -> str | None:
        """Feed the child its job and follow its chunks. Returns why it must be ended, if so."""
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(job)
            child.stdin.close()
        except BrokenPipeError:
            return None
        os.set_blocking(child.stdout.fileno(), False)
        stall = self._request.stall
        rest, last = b"", time.monotonic()
        looked, received = last, _received()
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while True:
                if self._stop.is_set():
                    raise Temporary("stopped")
                if selector.select(0.25):
                    news = os.read(child.stdout.fileno(), 65536)
                    if not news:
                        child.wait()
                        return None
                    *lines, rest = (rest + news).split(b"\n")
                    for line in lines:
                        count(int(line))
                    last = time.monotonic()
                    looked, received = last, _received()
                elif (now := time.monotonic()) - looked > stall:
                    came = _received() - received
                    if came < _TRICKLE * (now - looked):
                        return f"no chunk came for {stall:g} s"
                    if now - last > _STALLS * stall:
                        return f"no chunk came for {_STALLS * stall:g} s"
                    looked, received = now, received + came


def _received() -> int:
    """Return the bytes that this host has received, on all its interfaces together."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[0]) for line in lines)


def _plain(words: str) -> str:
    """Return an error without the query of an address, which may be a signature."""
    return re.sub(r"\?[^\s)\"']*", "?…", words)[:300]
