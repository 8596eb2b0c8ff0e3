"""Fetches and verifies missing files side by side: from peers first, then from the source."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Lock

from sparkwright.host.fetch import holes, place, verify
from sparkwright.host.fetch.downloaders import Libraries
from sparkwright.host.fetch.errors import Failed, Temporary, size
from sparkwright.host.fetch.peers import Peers
from sparkwright.host.fetch.progress import PEERS, log
from sparkwright.host.fetch.ranges import Limit, RangeFetch
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.fetch.upstream import Upstream
from sparkwright.host.fetch.web import Location
from sparkwright.host.fetch.workspace import Workspace

_LARGE_AT_ONCE = 2
_SMALL_AT_ONCE = 4
_GRACE = 3.0  # seconds that threads have to notice that the run ends


class Transfer:
    """One run's downloads.

    libraries: None if plain HTTP is to be used for everything.
    """

    def __init__(self, work: Workspace, libraries: Libraries | None) -> None:
        self._work = work
        self._request = work.request
        self._progress = work.progress
        self._stop = work.stop
        self._upstream = Upstream(work.request, work.stop)
        self._libraries = libraries
        self._lock = Lock()
        self._limit = Limit(work.request.limit)
        self._peers = Peers(work.request, work.stop, self._limit)
        self._futures: set[Future[None]] = set()

    def run(self, missing: list[FetchFile]) -> None:
        """Fetch the files; the first final error ends the run."""
        if not self._peers.any:
            self._upstream.connect()
        large = sum(self._is_large(file) for file in missing)
        self._connections = max(
            1, self._request.max_connections // max(1, min(large, _LARGE_AT_ONCE))
        )
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
                self._check_space()
        except BaseException:
            self._stop.set()
            wait(futures, timeout=_GRACE)
            raise
        finally:
            for pool in (self._large, self._small, self._hashing, self._following):
                pool.shutdown(wait=False, cancel_futures=True)

    def _check_space(self) -> None:
        """Stop if other programs fill the file system."""
        free = self._work.stage.free()
        if free < self._request.headroom:
            raise Failed(
                f"Only {size(free)} are free on the file system of "
                f"{self._work.destination.parent}, and {size(self._request.headroom)} "
                "must stay free: something else fills it. Free some space and run again: what was "
                "fetched is kept."
            )

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        task: Callable[[FetchFile, int], None],
        file: FetchFile,
        round_: int,
    ) -> None:
        with self._lock:
            self._futures.add(pool.submit(task, file, round_))

    def _is_large(self, file: FetchFile) -> bool:
        return file.size >= 2 * self._request.chunk_size

    def _pool(self, file: FetchFile) -> ThreadPoolExecutor:
        return self._large if self._is_large(file) else self._small

    def _download(self, file: FetchFile, round_: int) -> None:
        """Fill a part, hash a large one meanwhile, and submit it for verification."""
        part = self._work.stage.part(file.path)
        follower = digest = None
        if self._is_large(file) and file.sha256 is not None:
            follower = verify.Follower(part, file.size, self._stop)
            digest = self._following.submit(follower.run)
        try:
            self._fill(file, part, round_)
        except BaseException:
            if follower is not None:
                follower.give_up()
            raise
        if follower is not None:
            follower.complete()
        self._progress.present(file.path, file.size)
        self._submit(self._hashing, partial(self._verify, digest), file, round_)

    def _fill(self, file: FetchFile, part: Path, round_: int) -> None:
        """Fetch what a part lacks: from peers, then from the source."""
        # After wrong content, the same peers are only asked again if there is nobody else.
        if round_ == 1 or self._request.offline:
            self._peers.fill(file, part, partial(self._progress.received, file.path, PEERS))
        missing = holes.missing(part, file.size)
        if not missing:
            return
        source = self._upstream.connect()
        count = partial(self._progress.received, file.path, "plain HTTP")
        fetch = RangeFetch(self._request, source, file, part, count, self._stop, self._limit)
        if not self._is_large(file):
            fetch.run(source.direct(file.path), missing, 1)
            return
        location = source.locate(file)
        # After wrong content, the second try goes by plain HTTP.
        # Where parts have maps too: the libraries write past them.
        if round_ == 1 and self._libraries is not None and not self._work.stage.mapped:
            missing = self._by_libraries(self._libraries, file, part, missing, location)
        fetch.run(location, missing, self._connections)

    def _by_libraries(
        self,
        libraries: Libraries,
        file: FetchFile,
        part: Path,
        missing: list[tuple[int, int]],
        location: Location,
    ) -> list[tuple[int, int]]:
        """Have libraries fetch a file. Returns the ranges that are still missing."""
        names = ["hf_transfer"]
        if location.xet is not None:
            names = ["Xet"] if self._request.downloader == "xet" else ["hf_transfer", "Xet"]
        for name in names:
            if name == "hf_transfer" and missing != [(0, file.size)]:
                continue  # it fetches whole files only
            count = partial(self._progress.received, file.path, name)
            reason = libraries.fetch(
                name, location, part, file.size, missing, self._connections, count
            )
            missing = holes.missing(part, file.size)
            self._progress.present(file.path, file.size - holes.total(missing))
            if reason is None:
                break
            rest = "Xet" if name != names[-1] else "plain HTTP"
            log(f"{file.path}: {name} ended ({reason}); fetching the rest by {rest}")
        return missing

    def _verify(self, digest: Future[str | None] | None, file: FetchFile, round_: int) -> None:
        """Check a filled part; put it in place, or set it aside and fetch it once more."""
        part = self._work.stage.part(file.path)
        entry = self._work.verify(file, part, digest.result() if digest is not None else None)
        if not isinstance(entry, str):
            place.sync(part)
            self._work.owner.file(part)
            place.real_directories(self._work.base, file.path)
            part.replace(self._work.base / file.path)
            holes.map_of(part).unlink(missing_ok=True)
            self._work.stage.corrupt(file.path).unlink(missing_ok=True)
            self._work.add(file, entry, keep=True)
            if self._is_large(file):
                log(f"{file.path}: {size(file.size)} fetched and verified")
            return
        if round_ > 1:
            part.unlink()
            raise Failed(
                f"{file.path} came with the wrong content twice: {entry}. The hub, or a proxy or "
                "cache on the way to it, changes it; nothing was put in place."
            )
        log(f"{file.path}: {entry}; set aside, fetching it once more")
        part.replace(self._work.stage.corrupt(file.path))
        if self._work.stage.free() < file.size + self._request.headroom:
            self._work.stage.corrupt(file.path).unlink()
        holes.prepare(part, file.size, mapped=self._work.stage.mapped)
        self._progress.present(file.path, 0)
        self._submit(self._pool(file), self._download, file, 2)
