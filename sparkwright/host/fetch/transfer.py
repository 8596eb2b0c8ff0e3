"""Downloads of a run: the order of the files, and the downloader of each.

Libraries fetch the source's large files, each in a worker process that this module watches:
hf_transfer fetches an empty part in many ranges at once; hf_xet fetches the missing ranges of a
part from the hub's Xet storage. Ranges that the libraries leave out remain holes in the part, and
ranges.py fetches them.
"""

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any

from sparkwright.host.fetch import peers, ranges, request, sources, verify, workspace
from sparkwright.host.fetch.holes import Part, total
from sparkwright.host.fetch.messages import Failed, check, log, size
from sparkwright.host.fetch.sources import Location, Source
from sparkwright.host.lib.records import dataclass, encode

_AT_ONCE = (4, 2)  # small and large files to fetch at once; as many are hashed in parallel
_GRACE = 3.0  # seconds that threads have to notice that the run ends
_WORKER = Path(__file__).with_name("worker.py")
#: Threads of each library, which wait and do not compute. With two threads the chunks of
#: hf_transfer lose their order: the start of a file may then arrive last, and hashing can't keep
#: up.
_THREADS = {"hf_transfer": "1", "Xet": "2"}
#: Both libraries report whole blocks only: hf_transfer a chunk per connection, and hf_xet up to 64
#: MiB of a xorb. On a slow connection a block takes minutes; as long as the host receives this many
#: bytes per second, a pause is not a stall, up to this multiple of the stall limit.
_SLOW = 10_000
_STALLS = 5


class Transfer:
    """Downloads of one run.

    libraries: None to use plain HTTP for everything.
    """

    def __init__(self, work: workspace.Workspace, libraries: "Libraries | None") -> None:
        self._work = work
        self._request = work.request
        self._stop = work.stop
        self._source: Source | None = None
        self._libraries = libraries
        self._connecting = Lock()
        self._filling = [Semaphore(count) for count in _AT_ONCE]
        self._limit = ranges.Limit(work.request.limit)
        self._peers = peers.Peers(work.request, work.stop, self._limit)

    def run(self, missing: list[request.FetchFile]) -> None:
        """Fetch the files. The first final error ends the run."""
        if not self._peers.left:
            self._connected()
        large = min(sum(map(self._is_large, missing)), _AT_ONCE[True])
        self._connections = max(1, self._request.max_connections // max(1, large))
        pools = [ThreadPoolExecutor(2 * count) for count in _AT_ONCE]
        running = {pools[self._is_large(file)].submit(self._fetch, file) for file in missing}
        try:
            while running:
                done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                check(self._stop)
                free, headroom = self._work.free(), self._request.headroom
                if free < headroom:
                    parent, required = self._work.destination.parent, size(headroom)
                    raise Failed("room_gone", parent=parent, free=size(free), headroom=required)
        except BaseException:
            self._stop.set()
            raise
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            wait({future for future in running if future.running()}, timeout=_GRACE)

    def _connected(self) -> Source:
        """Return the source, after checking that it has the commit and lets this host read it.

        A host that gets everything from its peers queries no other server.
        """
        with self._connecting:
            check(self._stop)
            if self._source is None:
                if self._request.offline:
                    raise Failed("bundle_incomplete", repo=self._request.repo)
                kind = sources.Registry if self._request.source == "registry" else sources.Hub
                source = kind(self._request, sources.secret(self._request), self._stop)
                source.check()
                self._source = source
            return self._source

    def _is_large(self, file: request.FetchFile) -> bool:
        return file.size >= 2 * self._request.chunk_size

    def _fetch(self, file: request.FetchFile) -> None:
        """Fetch a file and put it in place. A file with wrong content is set aside and fetched once
        more.
        """
        work, part = self._work, self._work.part(file)
        corrupt = part.path.with_suffix(".corrupt")
        for again in (False, True):
            with self._filling[self._is_large(file)], verify.Follower(part, self._stop) as follower:
                once = self._fill(part, again)
            work.progress.present(file.path, file.size)
            entry = verify.entry(file, part.path, self._stop, follower.sha256() if once else None)
            if not isinstance(entry, str):
                work.put(part.path, file, entry)
                part.map.unlink(missing_ok=True)
                corrupt.unlink(missing_ok=True)
                if self._is_large(file):
                    log(f"{file.path}: {size(file.size)} fetched and verified")
                return
            if again:
                part.path.unlink()
                raise Failed("corrupt", file=file.path, fault=entry)
            log(f"{file.path}: {entry}; set aside, fetching it once more")
            part.path.replace(corrupt)
            if work.free() < file.size + self._request.headroom:
                corrupt.unlink()
            part.prepare(mapped=work.mapped)
            work.progress.present(file.path, 0)

    def _fill(self, part: Part, again: bool) -> bool:
        """Fetch a part's missing ranges: from peers, then from the source.

        Returns whether every byte was written once.
        """
        # After wrong content, the same peers are tried again only if there is no other source.
        if not again or self._request.offline:
            self._peers.fill(part)
        if not part.missing():
            return True
        source, file = self._connected(), part.file
        fetch = ranges.RangeFetch(self._request, source, part, self._stop, self._limit)
        if not self._is_large(file):
            return fetch.run(source.direct(file.path), 1)
        location = source.locate(file)
        # Use plain HTTP after wrong content, and for parts with maps: the libraries don't update
        # maps.
        libraries = None if again or self._work.mapped else self._libraries
        once = libraries is None or libraries.fetch(part, location, self._connections)
        return fetch.run(location, self._connections) and once


@dataclass(frozen=True)
class Libraries:
    """The downloader libraries of one run, each in a worker process.

    Attributes:
        lock: a descriptor that every worker keeps open, so that the run's lock is held until the
            worker ends.
    """

    work: workspace.Workspace
    runtime: Path
    lock: int

    def fetch(self, part: Part, location: Location, connections: int) -> bool:
        """Fetch a file or some of its ranges. Returns whether every byte was written only once:
        hf_transfer writes the whole answer even if it is longer than the range (0.1.9).
        """
        names, file, once = ["hf_transfer"], part.file, True
        if location.xet is not None:
            names = ["Xet"] if self.work.request.downloader == "xet" else ["hf_transfer", "Xet"]
        for name in names:
            if name == "hf_transfer" and part.missing() != [(0, file.size)]:
                continue  # hf_transfer fetches whole files only
            once = once and name != "hf_transfer"
            reason = self._fetch(name, part, location, connections)
            self.work.progress.present(file.path, file.size - total(part.missing()))
            if reason is None:
                break
            rest = "Xet" if name != names[-1] else "plain HTTP"
            log(f"{file.path}: {name} ended ({reason}); fetching the rest by {rest}")
        return once

    def _fetch(self, name: str, part: Part, location: Location, connections: int) -> str | None:
        """Fill a part's missing ranges with Xet, or with hf_transfer, which needs an empty part.

        Returns None, or the reason for an early end.
        """
        job: dict[str, Any] = {
            "downloader": name,
            "connections": connections,
            "chunk_size": self.work.request.chunk_size,
            "filename": str(part.path),
            "runtime": str(self.runtime),
            "parent": os.getpid(),
        }
        count = partial(part.received, name)
        if location.xet is not None and name == "Xet":
            job |= {"size": part.file.size, "ranges": part.missing(), "page": request.PAGE}
            return self._run(job | encode(location.xet), count)
        # hf_transfer deletes its file on failure, so it gets a second hard link of the part.
        link = part.path.with_suffix(".hf_transfer")
        link.unlink(missing_ok=True)
        try:
            link.hardlink_to(part.path)
        except OSError as error:
            return f"the file system has no hard links: {error.strerror}"
        try:
            job |= {"url": location.url, "headers": location.headers, "filename": str(link)}
            return self._run(job, count)
        finally:
            link.unlink(missing_ok=True)

    def _run(self, job: dict[str, Any], count: Callable[[int], None]) -> str | None:
        # hf_xet needs its own folder, and a job can't write to the user's home.
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as cache:
            own = {"TOKIO_WORKER_THREADS": _THREADS[job["downloader"]], "HF_XET_CACHE": cache}
            with subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER)], pass_fds=(self.lock,),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=own | os.environ,
            ) as worker:  # fmt: skip
                try:
                    reason = self._watch(worker, json.dumps(job).encode(), count)
                finally:
                    worker.kill()
            if reason is not None or worker.returncode == 0:
                return reason
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            # Leave out the queries of addresses, which may contain signatures.
            message = re.sub(r"\?[^\s)\"']*", "?…", lines[-1])[:300] if lines else ""
            return message or f"exit code {worker.returncode}"

    def _watch(
        self, worker: subprocess.Popen[bytes], job: bytes, count: Callable[[int], None]
    ) -> str | None:
        """Send a worker its job and count the bytes that it reports. Returns the reason to end the
        worker, if any.
        """
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(job)
            worker.stdin.close()
        except BrokenPipeError:
            return None
        output, stall, rest = worker.stdout.fileno(), self.work.request.stall, b""
        last = checked = time.monotonic()
        received = _received()
        while not self.work.stop.is_set():
            if select.select([output], [], [], 0.25)[0]:
                block = os.read(output, 65536)
                if not block:
                    worker.wait()
                    return None
                *lines, rest = (rest + block).split(b"\n")
                count(sum(map(int, lines)))
                last = checked = time.monotonic()
                received = _received()
            elif (now := time.monotonic()) - checked > stall:
                gained = _received() - received
                if gained < _SLOW * (now - checked):
                    return f"no chunk arrived for {stall:g} s"
                if now - last > _STALLS * stall:
                    return f"no chunk arrived for {_STALLS * stall:g} s"
                checked, received = now, received + gained
        raise Failed("stopped")


def _received() -> int:
    """Return the bytes that this host has received on all interfaces."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[0]) for line in lines)
