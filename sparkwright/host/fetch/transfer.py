"""Fetches and verifies missing files side by side: from peers first, then from the source.

Libraries download large files of the source, each in a worker process that is watched from here:
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
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sparkwright.host.fetch import holes, sources, verify
from sparkwright.host.fetch.errors import Failed, Temporary, size
from sparkwright.host.fetch.peers import Peers
from sparkwright.host.fetch.progress import PEERS, log
from sparkwright.host.fetch.ranges import Limit, RangeFetch
from sparkwright.host.fetch.request import PAGE, FetchFile, FetchRequest
from sparkwright.host.fetch.sources import Location, Source
from sparkwright.host.fetch.workspace import Workspace, publish, real_directories, sync

_LARGE_AT_ONCE = 2
_SMALL_AT_ONCE = 4
_GRACE = 3.0  # seconds that threads have to notice that the run ends
_WORKER = Path(__file__).with_name("worker.py")
#: These threads wait, they do not compute. With two of them the chunks of hf_transfer lose their
#: order: the start of a file may then arrive last, and hashing can't keep up.
_THREADS = {"hf_transfer": "1", "Xet": "2"}
#: Both report whole blocks only: hf_transfer chunks, of which every connection fetches one, and
#: hf_xet up to 64 MiB of a xorb. On a slow connection a block takes minutes; as long as the host
#: receives this many bytes per second, that is no stall, up to so many times the stall limit.
_SLOW = 10_000
_STALLS = 5


class Transfer:
    """Downloads of one run.

    libraries: None if plain HTTP is to be used for everything.
    """

    def __init__(self, work: Workspace, libraries: Libraries | None) -> None:
        self._work = work
        self._request = work.request
        self._progress = work.progress
        self._stop = work.stop
        self._source: Source | None = None
        self._libraries = libraries
        self._lock, self._connecting = Lock(), Lock()
        self._limit = Limit(work.request.limit)
        self._peers = Peers(work.request, work.stop, self._limit)
        self._futures: set[Future[None]] = set()

    def run(self, missing: list[FetchFile]) -> None:
        """Fetch the files; the first final error ends the run."""
        if not self._peers.any:
            self._connected()
        large = min(sum(map(self._is_large, missing)), _LARGE_AT_ONCE)
        self._connections = max(1, self._request.max_connections // max(1, large))
        self._large = ThreadPoolExecutor(_LARGE_AT_ONCE)
        self._small = ThreadPoolExecutor(_SMALL_AT_ONCE)
        self._hashing = ThreadPoolExecutor(verify.cpus())
        self._following = ThreadPoolExecutor(_LARGE_AT_ONCE)
        for file in missing:
            self._submit(self._pool(file), self._download, file, 1)
        try:
            while True:
                with self._lock:
                    futures = set(self._futures)
                if not futures:
                    return
                done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    with self._lock:
                        self._futures.discard(future)
                if self._stop.is_set():
                    raise Temporary("stopped")
                free, headroom = self._work.free(), self._request.headroom
                if free < headroom:
                    parent, required = self._work.destination.parent, size(headroom)
                    raise Failed("room_gone", parent=parent, free=size(free), headroom=required)
        except BaseException:
            self._stop.set()
            wait(futures, timeout=_GRACE)
            raise
        finally:
            for pool in (self._large, self._small, self._hashing, self._following):
                pool.shutdown(wait=False, cancel_futures=True)

    def _connected(self) -> Source:
        """Return the source, once it is seen to have the commit and to let this host read it.

        A host that gets everything from its peers queries nobody else.
        """
        with self._connecting:
            if self._source is None:
                if self._request.offline:
                    raise Failed("bundle_incomplete", repo=self._request.repo)
                kind = sources.Registry if self._request.source == "registry" else sources.Hub
                source = kind(self._request, sources.secret(self._request), self._stop)
                source.check()
                self._source = source
            return self._source

    def _submit(self, pool: ThreadPoolExecutor, task: Callable[..., None], *given: Any) -> None:
        with self._lock:
            self._futures.add(pool.submit(task, *given))

    def _is_large(self, file: FetchFile) -> bool:
        return file.size >= 2 * self._request.chunk_size

    def _pool(self, file: FetchFile) -> ThreadPoolExecutor:
        return self._large if self._is_large(file) else self._small

    def _download(self, file: FetchFile, round_: int) -> None:
        """Fill a part, hash a large one meanwhile, and submit it for verification."""
        part = self._work.part(file.path)
        follower = digest = None
        if self._is_large(file) and file.sha256 is not None:
            follower = verify.Follower(part, file.size, self._stop)
            digest = self._following.submit(follower.run)
        try:
            self._fill(file, part, round_)
        except BaseException:
            if follower is not None:
                follower.given_up.set()
            raise
        if follower is not None:
            follower.complete.set()
        self._progress.present(file.path, file.size)
        self._submit(self._hashing, self._verify, digest, file, round_)

    def _fill(self, file: FetchFile, part: Path, round_: int) -> None:
        """Fetch what a part lacks: from peers, then from the source."""
        # After wrong content, the same peers are only asked again if there is nobody else.
        if round_ == 1 or self._request.offline:
            self._peers.fill(file, part, partial(self._progress.received, file.path, PEERS))
        missing = holes.missing(part, file.size)
        if not missing:
            return
        source = self._connected()
        count = partial(self._progress.received, file.path, "plain HTTP")
        fetch = RangeFetch(self._request, source, file, part, count, self._stop, self._limit)
        if not self._is_large(file):
            fetch.run(source.direct(file.path), missing, 1)
            return
        location = source.locate(file)
        # After wrong content, the second try goes by plain HTTP.
        # Where parts have maps too: the libraries write past them.
        if round_ == 1 and self._libraries is not None and not self._work.mapped:
            self._by_libraries(self._libraries, file, part, location)
        fetch.run(location, holes.missing(part, file.size), self._connections)

    def _by_libraries(
        self, libraries: Libraries, file: FetchFile, part: Path, location: Location
    ) -> None:
        """Have libraries fetch a file, or some of it."""
        names = ["hf_transfer"]
        if location.xet is not None:
            names = ["Xet"] if self._request.downloader == "xet" else ["hf_transfer", "Xet"]
        for name in names:
            missing = holes.missing(part, file.size)
            if name == "hf_transfer" and missing != [(0, file.size)]:
                continue  # it fetches whole files only
            count = partial(self._progress.received, file.path, name)
            reason = libraries.fetch(
                name, location, part, file.size, missing, self._connections, count
            )
            left = holes.total(holes.missing(part, file.size))
            self._progress.present(file.path, file.size - left)
            if reason is None:
                return
            rest = "Xet" if name != names[-1] else "plain HTTP"
            log(f"{file.path}: {name} ended ({reason}); fetching the rest by {rest}")

    def _verify(self, digest: Future[str | None] | None, file: FetchFile, round_: int) -> None:
        """Check a filled part; put it in place, or set it aside and fetch it once more."""
        work, part = self._work, self._work.part(file.path)
        corrupt = work.part(file.path, "corrupt")
        entry = verify.entry(file, part, self._stop, digest.result() if digest else None)
        if not isinstance(entry, str):
            sync(part)
            publish(part)
            real_directories(work.base, file.path)
            part.replace(work.base / file.path)
            holes.map_of(part).unlink(missing_ok=True)
            corrupt.unlink(missing_ok=True)
            work.add(file, entry, keep=True)
            if self._is_large(file):
                log(f"{file.path}: {size(file.size)} fetched and verified")
            return
        if round_ > 1:
            part.unlink()
            raise Failed("corrupt", file=file.path, fault=entry)
        log(f"{file.path}: {entry}; set aside, fetching it once more")
        part.replace(corrupt)
        if work.free() < file.size + self._request.headroom:
            corrupt.unlink()
        holes.prepare(part, file.size, mapped=work.mapped)
        self._progress.present(file.path, 0)
        self._submit(self._pool(file), self._download, file, 2)


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
            own = {"TOKIO_WORKER_THREADS": _THREADS[job["downloader"]], "HF_XET_CACHE": cache}
            with subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER)], pass_fds=(self._lock,),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=own | os.environ,
            ) as worker:  # fmt: skip
                try:
                    reason = self._watch(worker, json.dumps(document).encode(), count)
                finally:
                    worker.kill()
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
