"""Finds the files of a request that are on this host already, so that they are not fetched."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkwright.host.contracts.fetch import FetchFile
from sparkwright.host.contracts.receipt import ReceiptEntry
from sparkwright.host.fetch import adopt, place, verify
from sparkwright.host.fetch.complete import same
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.verified import cpus, is_pointer
from sparkwright.host.fetch.workspace import Workspace
from sparkwright.host.lib import receipt


class Existing:
    """Looks in the target directory, in other revisions, and where the request says."""

    def __init__(self, work: Workspace) -> None:
        self._work = work

    def missing(self, files: tuple[FetchFile, ...]) -> list[FetchFile]:
        """Return the files that have to be fetched, the largest first."""
        known = self._work.stage.verified()
        old = receipt.read(str(self._work.base)) if self._work.repairs else None
        if old is not None and old.commit == self._work.request.revision:
            known = {**old.files, **known}
        missing = self._check(files, known)
        others = place.other_revisions(self._work.destination)
        missing = [file for file in missing if not any(self._link(file, *one) for one in others)]
        return self._adopt(missing)

    def _check(
        self, files: tuple[FetchFile, ...], known: dict[str, ReceiptEntry]
    ) -> list[FetchFile]:
        """Return the files that are not in the target directory, or not good there."""
        missing: list[FetchFile] = []
        doubtful: list[FetchFile] = []
        for file in files:
            path, entry = self._work.base / file.path, known.get(file.path)
            if place.beyond_link(self._work.base, file.path):
                log(f"{file.path} is a symlink; replacing it by a regular file")
                missing.append(file)
            elif not path.is_file() or path.lstat().st_size != file.size:
                if path.exists():
                    fault = "is a Git LFS pointer" if is_pointer(path) else "has another size"
                    log(f"{file.path} {fault}; fetching it")
                missing.append(file)
            elif entry and same(file, entry) and receipt.fault(str(path), entry) is None:
                self._work.verified.add(file, entry)
            else:
                doubtful.append(file)
        if doubtful:
            self._work.progress.state = "verifying"
            with ThreadPoolExecutor(cpus()) as pool:
                verdicts = pool.map(self._hash, doubtful)
                missing += [file for file, good in zip(doubtful, verdicts) if not good]  # noqa: B905
            self._work.progress.state = "running"
        return sorted(missing, key=lambda file: -file.size)

    def _hash(self, file: FetchFile) -> bool:
        """Hash a file that has no valid receipt entry. Returns whether it is good."""
        path = self._work.base / file.path
        wrong = self._work.verified.check(file, path)
        if wrong is not None:
            log(f"{file.path}: {wrong}; fetching it again")
            return False
        self._work.verified.accept(file, path)
        return True

    def _link(self, file: FetchFile, directory: Path, entries: dict[str, ReceiptEntry]) -> bool:
        """Link a file of another revision, if it is the same by that revision's receipt."""
        entry, source = entries.get(file.path), directory / file.path
        if entry is None or not same(file, entry) or receipt.fault(str(source), entry) is not None:
            return False
        if not place.link(source, self._work.base, file.path):
            return False
        log(f"{file.path}: shared with revision {directory.name[:12]}")
        self._work.verified.add(file, entry)
        return True

    def _adopt(self, missing: list[FetchFile]) -> list[FetchFile]:
        """Use what the user has elsewhere on this host. Returns what is still missing."""
        if not missing or not self._work.request.adopt:
            return missing
        self._work.progress.state = "looking for earlier downloads"
        found = adopt.candidates(self._work.request.adopt, missing)
        with ThreadPoolExecutor(cpus()) as pool:
            adopted = pool.map(lambda file: self._use(file, found.get(file.size, [])), missing)
            missing = [file for file, done in zip(missing, adopted) if not done]  # noqa: B905
        self._work.progress.state = "running"
        return missing

    def _use(self, file: FetchFile, paths: list[Path]) -> bool:
        """Use the first of the likely files that has the right content."""
        for path in adopt.worth_hashing(file, paths)[:3]:
            try:
                source = path.lstat()
                sha256, blob_id = verify.digests(
                    path, file.size, file.sha256 is None, self._work.stop
                )
            except OSError:
                continue
            if verify.mismatch(file, sha256, blob_id) is not None:
                continue
            if (
                shutil.disk_usage(self._work.stage.root).free
                < file.size + self._work.request.headroom
            ):
                return False
            target = self._work.base / file.path
            place.real_directories(self._work.base, file.path)
            if not adopt.place(path, target, world_readable=bool(source.st_mode & 0o004)):
                return False
            found = target.lstat()
            if found.st_ino != source.st_ino:  # a copy, not a link to the user's file
                self._work.owner.file(target)
                place.sync(target)
            entry = ReceiptEntry(file.size, found.st_mtime_ns, sha256, file.blob_id)
            self._work.verified.add(file, entry, keep=True)
            log(f"{file.path}: adopted from {path}")
            return True
        return False
