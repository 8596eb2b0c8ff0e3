"""Finds the files of a request that are on this host already, so that they are not fetched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkwright.host.fetch import adopt, place, verify
from sparkwright.host.fetch.complete import same
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.fetch.workspace import Workspace
from sparkwright.host.lib import receipt, trusted
from sparkwright.host.lib.receipt import ReceiptEntry


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
        foreign: list[FetchFile] = []
        for file in files:
            path, entry = self._work.base / file.path, known.get(file.path)
            if place.beyond_link(self._work.base, file.path):
                log(f"{file.path} is a symlink; replacing it by a regular file")
                missing.append(file)
            elif not path.is_file() or path.lstat().st_size != file.size:
                if path.exists():
                    fault = (
                        "is a Git LFS pointer" if verify.is_pointer(path) else "has another size"
                    )
                    log(f"{file.path} {fault}; fetching it")
                missing.append(file)
            elif reason := trusted.why(path.lstat()):
                log(f"{file.path} {reason}; replacing it by a copy")
                foreign.append(file)
            elif entry and same(file, entry) and receipt.fault(str(path), entry) is None:
                self._work.add(file, entry)
            else:
                doubtful.append(file)
        if doubtful:
            self._work.progress.state = "verifying"
            with ThreadPoolExecutor(verify.cpus()) as pool:
                verdicts = pool.map(self._hash, doubtful)
                missing += [file for file, good in zip(doubtful, verdicts) if not good]  # noqa: B905
            self._work.progress.state = "running"
        missing += self._each(foreign, lambda file: self._use(file, [self._work.base / file.path]))
        return sorted(missing, key=lambda file: -file.size)

    def _hash(self, file: FetchFile) -> bool:
        """Hash a file that has no valid receipt entry. Returns whether it is good."""
        path = self._work.base / file.path
        entry = self._work.verify(file, path)
        if isinstance(entry, str):
            log(f"{file.path}: {entry}; fetching it again")
            return False
        self._work.owner.file(path)
        self._work.add(file, entry, keep=True)
        return True

    def _link(self, file: FetchFile, directory: Path, entries: dict[str, ReceiptEntry]) -> bool:
        """Link a file of another revision, if it is the same by that revision's receipt."""
        entry, source = entries.get(file.path), directory / file.path
        if entry is None or not same(file, entry) or receipt.fault(str(source), entry) is not None:
            return False
        if not place.link(source, self._work.base, file.path):
            return False
        log(f"{file.path}: shared with revision {directory.name[:12]}")
        self._work.add(file, entry)
        return True

    def _adopt(self, missing: list[FetchFile]) -> list[FetchFile]:
        """Use what the user has elsewhere on this host. Returns what is still missing."""
        if not missing or not self._work.request.adopt:
            return missing
        self._work.progress.state = "looking for earlier downloads"
        found = adopt.candidates(self._work.request.adopt, missing)
        missing = self._each(
            missing, lambda file: self._use(file, adopt.worth_copying(file, found))
        )
        self._work.progress.state = "running"
        return missing

    @staticmethod
    def _each(files: list[FetchFile], use: Callable[[FetchFile], bool]) -> list[FetchFile]:
        """Return the files that could not be used; several are tried at once."""
        with ThreadPoolExecutor(verify.cpus()) as pool:
            return [file for file, done in zip(files, pool.map(use, files)) if not done]  # noqa: B905

    def _use(self, file: FetchFile, paths: list[Path]) -> bool:
        """Use the first of the likely files that has the right content.

        What is hashed is what stays: root's own copy, which nobody changes between the two.
        """
        work, copy = self._work, self._work.stage.copy(file.path)
        for path in paths:
            place.real_directories(work.stage.parts, file.path)
            room = work.stage.free() - work.request.headroom
            how = adopt.take(path, copy, file.size, room, work.stop)
            if how is None:
                continue
            sha256, blob_id = verify.digests(copy, file.size, file.sha256 is None, work.stop)
            if verify.mismatch(file, sha256, blob_id) is not None:
                copy.unlink()
                continue
            if how is not adopt.How.LINKED:  # a link is a file of root's that is there already
                work.owner.file(copy)
                place.sync(copy)
            entry = ReceiptEntry(file.size, copy.lstat().st_mtime_ns, sha256, file.blob_id)
            copy.replace(work.base / file.path)
            work.add(file, entry, keep=True)
            log(f"{file.path}: {how.value} from {path}")
            return True
        return False
