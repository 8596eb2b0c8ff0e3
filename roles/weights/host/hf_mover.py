"""Moves a large file with hf_transfer (many ranges at once), watched from outside.

It never decides anything: whatever it leaves undone, the part's holes say what is missing, and
ranges.py fetches that. hf_transfer deletes its file when it fails, so it is given a second hard
link of the part.
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

from .errors import Temporary
from .hub import Location
from .request import Request

_CHILD = Path(__file__).with_name("hf_child.py")


def move(
    request: Request,
    runtime: Path,
    location: Location,
    part: Path,
    connections: int,
    count: Callable[[int], None],
    stop: Event,
    lock: int,
) -> str | None:
    """Run hf_transfer on an empty part of full length. Returns None, or why it ended early.

    lock: a descriptor that the child keeps open, so that the run's lock lasts as long as it.
    """
    link = part.with_name(part.name + ".hf_transfer")
    link.unlink(missing_ok=True)
    try:
        link.hardlink_to(part)
    except OSError as error:
        return f"the file system has no hard links ({error.strerror})"
    job = {
        "url": location.url,
        "filename": str(link),
        "connections": connections,
        "chunk_size": request.chunk_size,
        "headers": location.headers,
        "runtime": str(runtime),
        "parent": os.getpid(),
    }
    try:
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(lock,),
                # Its many threads are for waiting, not for work.
                env={"TOKIO_WORKER_THREADS": "2", **os.environ},
            )
            try:
                ended = _watch(child, json.dumps(job).encode(), request.stall, count, stop)
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
    finally:
        link.unlink(missing_ok=True)


def _watch(
    child: subprocess.Popen[bytes],
    job: bytes,
    stall: float,
    count: Callable[[int], None],
    stop: Event,
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
    rest, last = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise Temporary("stopped")
            if selector.select(0.25):
                news = os.read(child.stdout.fileno(), 65536)
                if not news:
                    child.wait()
                    return None
                *lines, rest = (rest + news).split(b"\n")
                for line in lines:
                    # It reports the last byte's distance from the first, one less than moved.
                    count(int(line) + 1)
                last = time.monotonic()
            elif time.monotonic() - last > stall:
                return f"no chunk came for {stall:g} s"


def _plain(words: str) -> str:
    """Return an error without the query of an address, which may be a signature."""
    return re.sub(r"\?[^\s)\"']*", "?…", words)[:300]
