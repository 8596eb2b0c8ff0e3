"""One fetch: what is there already, what is missing, fetch, verify, put in place, receipt."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sparkwright.host.fetch import adopt, contents, holes, place, verify
from sparkwright.host.fetch.complete import complete, same
from sparkwright.host.fetch.downloaders import Mover
from sparkwright.host.fetch.errors import Failed, NoSpace, Temporary, size
from sparkwright.host.fetch.hub import Location
from sparkwright.host.fetch.peers import Peers
from sparkwright.host.fetch.progress import Progress, log
from sparkwright.host.fetch.ranges import Limit, RangeFetch
from sparkwright.host.fetch.request import File, Request
from sparkwright.host.fetch.upstream import Upstream
from sparkwright.host.lib import receipt

_LARGE_AT_ONCE = 2
_SMALL_AT_ONCE = 4
_GRACE = 3.0  # seconds that workers get to notice that the run ends


class Job:
    def __init__(
        self, request: Request, runtime: Path | None, progress: Progress, stop: Event
    ) -> None:
        self._request = request
        self._runtime = runtime
        self._progress = progress
        self._stop = stop
        self._stage = place.Stage(request)
        self._owner = place.Ownership(request)
        self._lock = Lock()
        self._limit = Limit(request.limit)
        self._peers = Peers(request, stop, self._limit)
        self._upstream = Upstream(request, runtime, stop)
        self._entries: dict[str, Any] = {}
        self._futures: set[Future[None]] = set()

    def run(self) -> str:
        """Return the message of success; raise Failed otherwise."""
        self._first = not self._request.destination.parent.exists()
        with self._stage.lock(self._request.state_dir) as self._held:
            self._progress.start()
            done = complete(self._request, self._progress)
            if done is None:
                done = self._fetch()
            self._stage.remove()
        return done

    def _fetch(self) -> str:
        request, progress = self._request, self._progress
        began = time.monotonic()
        # The files are looked for, and put, in the destination when it is there already
        # (a file in it was changed, or someone else filled it), and in the stage otherwise.
        self._repair = request.destination.is_dir()
        self._base = request.destination if self._repair else self._stage.files
        known = self._stage.verified()
        old = receipt.read(str(request.destination)) if self._repair else None
        if old is not None and old.get("commit") == request.revision:
            known = {**old["files"], **known}
        files = request.files
        if files is None:
            files = self._upstream.files()
        progress.files_total = len(files)
        progress.bytes_total = sum(file.size for file in files)
        self._base.mkdir(mode=0o755, parents=True, exist_ok=True)
        missing = self._adopt(self._share(self._look(files, known)))
        kept = self._measure(missing)
        if kept:
            log(f"kept {kept} bytes ({size(kept)}) of {progress.bytes_total}")
        if missing:
            if not self._peers.any:
                self._upstream.check()
            self._get(missing)
        self._finish(files)
        moved, took = progress.bytes_moved, time.monotonic() - began
        near = f", {size(progress.bytes_peers)} of it from peers" if progress.bytes_peers else ""
        return (
            f"complete: {len(files)} files, {size(progress.bytes_total)}, {size(moved)} fetched "
            f"in {took:.1f} s ({size(moved / took)}/s){near}, {size(kept)} kept: "
            f"{request.destination}"
        )

    # What is there

    def _look(self, files: tuple[File, ...], known: dict[str, Any]) -> list[File]:
        """Sort out the files that are there and good. Returns those to fetch, large first."""
        missing: list[File] = []
        doubtful: list[File] = []
        for file in files:
            path, entry = self._base / file.path, known.get(file.path)
            if place.beyond_link(self._base, file.path):
                log(f"{file.path} is a link; a real file takes its place")
                missing.append(file)
            elif not path.is_file() or path.lstat().st_size != file.size:
                if path.exists():
                    kind = "a Git LFS pointer" if _pointer(path) else "of another size"
                    log(f"{file.path} is {kind}; fetching it")
                missing.append(file)
            elif entry and same(file, entry) and receipt.fault(str(path), entry) is None:
                self._entries[file.path] = entry
                self._progress.present(file.path, file.size)
                self._progress.finished()
            else:
                doubtful.append(file)
        if doubtful:
            self._progress.state = "verifying"
            with ThreadPoolExecutor(_cpus()) as pool:
                verdicts = pool.map(self._rehash, doubtful)
                missing += [file for file, good in zip(doubtful, verdicts) if not good]  # noqa: B905
            self._progress.state = "running"
        return sorted(missing, key=lambda file: -file.size)

    def _share(self, missing: list[File]) -> list[File]:
        """Link what another revision has on this disk already. Returns what is still missing."""
        others = place.siblings(self._request.destination)
        return [file for file in missing if not any(self._linked(file, *one) for one in others)]

    def _linked(self, file: File, directory: Path, entries: dict[str, Any]) -> bool:
        """Link a file of another revision, if it is the same by that revision's receipt."""
        entry, source = entries.get(file.path), directory / file.path
        if entry is None or not same(file, entry) or receipt.fault(str(source), entry) is not None:
            return False
        if not place.link(source, self._base, file.path):
            return False
        log(f"{file.path}: shared with revision {directory.name[:12]}")
        self._entries[file.path] = entry
        self._progress.present(file.path, file.size)
        self._progress.finished()
        return True

    def _adopt(self, missing: list[File]) -> list[File]:
        """Take what the user has elsewhere on this host. Returns what is still missing."""
        if not missing or not self._request.adopt:
            return missing
        self._progress.state = "looking for earlier downloads"
        found = adopt.candidates(self._request.adopt, missing)
        with ThreadPoolExecutor(_cpus()) as pool:
            taken = pool.map(lambda file: self._adopted(file, found.get(file.size, [])), missing)
            left = [file for file, done in zip(missing, taken) if not done]  # noqa: B905
        self._progress.state = "running"
        return left

    def _adopted(self, file: File, paths: list[Path]) -> bool:
        """Take the first of the files that is the wanted one."""
        for path in adopt.order(file, [one for one in paths if adopt.plausible(file, one)])[:3]:
            try:
                stat = path.lstat()
                sha256, blob_id = verify.digests(path, file.size, file.sha256 is None, self._stop)
            except OSError:
                continue
            if verify.mismatch(file, sha256, blob_id) is not None:
                continue
            if shutil.disk_usage(self._stage.root).free < file.size + self._request.headroom:
                return False
            target = self._base / file.path
            place.real_directories(self._base, file.path)
            if not adopt.take(path, target, world_readable=bool(stat.st_mode & 0o004)):
                return False
            there = target.lstat()
            if there.st_ino != stat.st_ino:
                self._owner.file(target)
                place.sync(target)
            with self._lock:
                entry = {"size": file.size, "sha256": sha256, "blob_id": file.blob_id}
                self._entries[file.path] = {**entry, "mtime_ns": there.st_mtime_ns}
                self._stage.note(self._entries)
            self._progress.present(file.path, file.size)
            self._progress.finished()
            log(f"{file.path}: taken from {path}")
            return True
        return False

    def _rehash(self, file: File) -> bool:
        """Hash a file that no receipt speaks for. Tells whether it is good, and notes it."""
        path = self._base / file.path
        wrong = self._judge(file, path)
        if wrong is not None:
            log(f"{file.path}: {wrong}; fetching it again")
            return False
        self._accept(file, path)
        return True

    def _judge(self, file: File, path: Path, known: str | None = None) -> str | None:
        """Return what is wrong with a whole file's content; keep its digests when nothing is.

        known: its sha256 as it was hashed while it came, if it was.
        """
        found = path.lstat()
        if found.st_size != file.size:
            return f"wanted {file.size} bytes, got {found.st_size}"
        if _pointer(path):
            raise Failed(
                f"{file.path} is a Git LFS pointer in the repository itself: the large file was "
                "never uploaded there. Choose another revision."
            )
        if known is not None and known == file.sha256:
            sha256, blob_id = known, None
        else:
            sha256, blob_id = verify.digests(path, file.size, file.sha256 is None, self._stop)
        wrong = verify.mismatch(file, sha256, blob_id)
        if wrong is None:
            entry = {"size": file.size, "sha256": sha256, "blob_id": file.blob_id}
            with self._lock:
                self._entries[file.path] = {**entry, "mtime_ns": found.st_mtime_ns}
        return wrong

    def _accept(self, file: File, path: Path) -> None:
        """Note a file that is verified and in place."""
        self._owner.file(path)
        self._progress.present(file.path, file.size)
        self._progress.finished()
        with self._lock:
            self._stage.note(self._entries)

    def _measure(self, missing: list[File]) -> int:
        """Prepare the parts, count what is kept, and see that the rest fits on the disk."""
        request, lacking = self._request, 0
        wanted = {self._stage.part(file.path) for file in missing}
        for old in sorted(self._stage.parts.rglob("*")):
            if old.is_file() and old not in wanted:
                old.unlink()
        for file in missing:
            part = self._stage.part(file.path)
            holes.prepare(part, file.size)
            gap = holes.total(holes.missing(part, file.size))
            self._progress.present(file.path, file.size - gap)
            lacking += gap
        free = shutil.disk_usage(self._stage.root).free
        if missing and free < lacking + request.headroom:
            raise Failed(
                f"{request.repo} needs {size(lacking)} more on the file system of "
                f"{request.destination.parent} and {size(request.headroom)} must stay free there, "
                f"but only {size(free)} are free. Free {size(lacking + request.headroom - free)} "
                "or put the models on a larger file system."
            )
        kept = self._progress.bytes_done
        self._progress.bytes_kept = kept
        return kept

    # Fetching

    def _get(self, missing: list[File]) -> None:
        """Fetch and verify side by side; the first final error ends it all."""
        large = sum(self._is_large(file) for file in missing)
        self._connections = max(
            1, self._request.max_connections // max(1, min(large, _LARGE_AT_ONCE))
        )
        self._large = ThreadPoolExecutor(_LARGE_AT_ONCE)
        self._small = ThreadPoolExecutor(_SMALL_AT_ONCE)
        self._hashing = ThreadPoolExecutor(_cpus())
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
                self._keep_free()
        except BaseException:
            self._stop.set()
            wait(futures, timeout=_GRACE)
            raise
        finally:
            for pool in (self._large, self._small, self._hashing, self._following):
                pool.shutdown(wait=False, cancel_futures=True)

    def _keep_free(self) -> None:
        """Somebody else writes to this disk too: what shall stay free stays free."""
        free = shutil.disk_usage(self._stage.root).free
        if free < self._request.headroom:
            raise NoSpace(
                f"Only {size(free)} are free on the file system of "
                f"{self._request.destination.parent}, and {size(self._request.headroom)} must "
                "stay free: something else fills it. Free some space and run again: what was "
                "fetched is kept."
            )

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        task: Callable[[File, int], None],
        file: File,
        round_: int,
    ) -> None:
        with self._lock:
            self._futures.add(pool.submit(task, file, round_))

    def _is_large(self, file: File) -> bool:
        return file.size >= 2 * self._request.chunk_size

    def _pool(self, file: File) -> ThreadPoolExecutor:
        return self._large if self._is_large(file) else self._small

    def _download(self, file: File, round_: int) -> None:
        """Fill a part, hashed meanwhile where that pays, then hand it over to be verified."""
        part = self._stage.part(file.path)
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
            follower.whole()
        self._progress.present(file.path, file.size)
        self._submit(self._hashing, partial(self._verify, digest), file, round_)

    def _fill(self, file: File, part: Path, round_: int) -> None:
        """Fetch what a part lacks: from peers, then from where the request says."""

        def count(moved: int) -> None:
            self._progress.moved(file.path, moved)

        def near(moved: int) -> None:
            self._progress.moved(file.path, moved, peer=True)

        # What came wrong once is not asked of the same hosts again, unless there are no others.
        if round_ == 1 or self._request.offline:
            self._peers.fill(file, part, near)
        missing = holes.missing(part, file.size)
        if missing:
            self._upstream.check()
        fetch = RangeFetch(
            self._request, self._upstream, file, part, count, self._stop, self._limit
        )
        if missing and not self._is_large(file):
            fetch.run(self._upstream.direct(file.path), missing, 1)
        elif missing:
            location = self._upstream.locate(file)
            # A file that came wrong once is fetched by other means the second time.
            if round_ == 1:
                missing = self._move(file, part, missing, location, count)
            fetch.run(location, missing, self._connections)

    def _move(
        self,
        file: File,
        part: Path,
        missing: list[tuple[int, int]],
        location: Location,
        count: Callable[[int], None],
    ) -> list[tuple[int, int]]:
        """Let a library fetch a file, if it shall and can. Returns the ranges still missing."""
        request = self._request
        if request.mover == "http" or self._runtime is None or request.limit is not None:
            return missing
        mover = Mover(request, self._runtime, self._stop, self._held)
        connections = self._connections
        if location.xet is not None:
            name = "Xet"
            ended = mover.xet(location, part, file.size, missing, connections, count)
        elif missing == [(0, file.size)]:
            name = "hf_transfer"
            ended = mover.hf_transfer(location, part, connections, count)
        else:
            return missing  # hf_transfer fetches whole files only
        missing = holes.missing(part, file.size)
        if ended is not None:
            log(f"{file.path}: {name} ended ({ended}); fetching the rest by plain HTTP")
        self._progress.present(file.path, file.size - holes.total(missing))
        return missing

    def _verify(self, digest: Future[str | None] | None, file: File, round_: int) -> None:
        """Judge a filled part; put it in place, or set it aside and fetch it once more."""
        part = self._stage.part(file.path)
        wrong = self._judge(file, part, digest.result() if digest is not None else None)
        if wrong is None:
            place.sync(part)
            self._owner.file(part)
            place.real_directories(self._base, file.path)
            part.replace(self._base / file.path)
            self._stage.corrupt(file.path).unlink(missing_ok=True)
            self._accept(file, self._base / file.path)
            if self._is_large(file):
                log(f"{file.path}: {size(file.size)} fetched and verified")
            return
        if round_ > 1:
            part.unlink()
            raise Failed(
                f"{file.path} came with the wrong content twice: {wrong}. The hub or something on "
                "the way to it is at fault; nothing was put in place."
            )
        log(f"{file.path}: {wrong}; set aside, fetching it once more")
        part.replace(self._stage.corrupt(file.path))
        if shutil.disk_usage(self._stage.root).free < file.size + self._request.headroom:
            self._stage.corrupt(file.path).unlink()
        holes.prepare(part, file.size)
        self._progress.present(file.path, 0)
        self._submit(self._pool(file), self._download, file, 2)

    # The end

    def _finish(self, files: tuple[File, ...]) -> None:
        """Judge the whole, write the receipt, and give the directory its name."""
        request, base = self._request, self._base
        names = [file.path for file in files]
        wrong_contents = contents.faults(base, names, request.expect) if request.expect else []
        if wrong_contents:
            raise Failed(
                f"{request.repo}@{request.revision[:12]} is whole but not what it should be: "
                f"{'; '.join(wrong_contents)}. Nothing was put in place. Take another revision."
            )
        entries = {file.path: self._entries[file.path] for file in files}
        self._progress.state = "verifying"
        directories = {base, *(d for file in files for d in (base / file.path).parents)}
        for directory in sorted(d for d in directories if d == base or base in d.parents):
            self._owner.directory(directory)
            place.sync(directory)
        place.write_json(
            base / receipt.NAME,
            {
                "version": receipt.VERSION,
                "repo": request.repo,
                "endpoint": request.endpoint,
                "commit": request.revision,
                "files": entries,
            },
        )
        self._owner.file(base / receipt.NAME)
        place.sync(base)
        if self._first:
            self._owner.directory(request.destination.parent)
        if not self._repair:
            base.rename(request.destination)
        place.sync(request.destination.parent)
        wrong = receipt.check(str(request.destination), request.revision)
        if wrong is not None:
            raise Temporary(f"{wrong} in {request.destination}: changed meanwhile. Run again.")
        place.report_extras(request.destination, entries)


def _pointer(path: Path) -> bool:
    return path.stat().st_size < 1024 and verify.is_pointer(path)


def _cpus() -> int:
    """Return how many files are hashed at once: a serving box keeps most of its processors."""
    return max(1, min(4, os.cpu_count() or 1))
