"""Finds the files of a request that are on this host already, so that they are not fetched."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from sparkwright.host.fetch import adopt, verify, workspace
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.fetch.workspace import Workspace
from sparkwright.host.lib import receipt, trusted
from sparkwright.host.lib.receipt import ReceiptEntry


def missing(work: Workspace) -> list[FetchFile]:
    """Return the files that have to be fetched, the largest first.

    They are looked for in the target directory, in other revisions, and where the request says.
    """
    absent = _check(work)
    for directory in sorted(work.destination.parent.glob("*")):
        known = receipt.read(str(directory)) if directory != work.destination else None
        if absent and known is not None and trusted.exposed(directory) is None:
            absent = [file for file in absent if not _link(work, file, directory, known.files)]
    if not absent or not work.request.adopt:
        return absent
    work.progress.state = "looking for earlier downloads"
    found = adopt.candidates(work.request.adopt, absent)
    absent = _each(absent, lambda file: _use(work, file, adopt.worth_copying(file, found)))
    work.progress.state = "running"
    return absent


def _check(work: Workspace) -> list[FetchFile]:
    """Return the files that are not in the target directory, or not good there."""
    known = work.known()
    absent: list[FetchFile] = []
    doubtful: list[FetchFile] = []
    foreign: list[FetchFile] = []
    for file in work.request.files:
        path, entry = work.base / file.path, known.get(file.path)
        below = [work.base / parent for parent in PurePosixPath(file.path).parents]
        if any(directory.is_symlink() for directory in (path, *below[:-1])):
            log(f"{file.path} is a symlink; replacing it by a regular file")
            absent.append(file)
        elif not path.is_file() or path.lstat().st_size != file.size:
            if path.exists():
                pointer = verify.is_pointer(path)
                fault = "is a Git LFS pointer" if pointer else "has another size"
                log(f"{file.path} {fault}; fetching it")
            absent.append(file)
        elif reason := trusted.why(path.lstat()):
            log(f"{file.path} {reason}; replacing it by a copy")
            foreign.append(file)
        elif entry and workspace.same(file, entry) and receipt.fault(str(path), entry) is None:
            work.add(file, entry)
        else:
            doubtful.append(file)
    if doubtful:
        work.progress.state = "verifying"
        absent += _each(doubtful, lambda file: _hash(work, file))
        work.progress.state = "running"
    absent += _each(foreign, lambda file: _use(work, file, [work.base / file.path]))
    return sorted(absent, key=lambda file: -file.size)


def _each(files: list[FetchFile], use: Callable[[FetchFile], bool]) -> list[FetchFile]:
    """Return the files that could not be used; several are tried at once."""
    with ThreadPoolExecutor(verify.cpus()) as pool:
        return [file for file, done in zip(files, pool.map(use, files), strict=True) if not done]


def _hash(work: Workspace, file: FetchFile) -> bool:
    """Hash a file that has no valid receipt entry. Returns whether it is good."""
    path = work.base / file.path
    entry = verify.entry(file, path, work.stop)
    if isinstance(entry, str):
        log(f"{file.path}: {entry}; fetching it again")
        return False
    workspace.publish(path)
    work.add(file, entry, keep=True)
    return True


def _link(
    work: Workspace, file: FetchFile, directory: Path, entries: dict[str, ReceiptEntry]
) -> bool:
    """Link a file of another revision, if it is the same by that revision's receipt."""
    entry, source = entries.get(file.path), directory / file.path
    if entry is None or not workspace.same(file, entry) or receipt.fault(str(source), entry):
        return False
    workspace.real_directories(work.base, file.path)
    target = work.base / file.path
    target.unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # the file system has no hard links
        return False
    log(f"{file.path}: shared with revision {directory.name[:12]}")
    work.add(file, entry)
    return True


def _use(work: Workspace, file: FetchFile, paths: list[Path]) -> bool:
    """Use the first of the likely files that has the right content.

    What is hashed is what stays: root's own copy, which nobody changes between the two.
    """
    copy = work.part(file.path, "copy")
    for path in paths:
        workspace.real_directories(work.parts, file.path)
        room = work.free() - work.request.headroom
        how = adopt.take(path, copy, file.size, room, work.stop)
        if how is None:
            continue
        entry = verify.entry(file, copy, work.stop)
        if isinstance(entry, str):
            copy.unlink()
            continue
        if how != adopt.LINKED:  # a link is a file of root's that is there already
            workspace.publish(copy)
            workspace.sync(copy)
        copy.replace(work.base / file.path)
        work.add(file, entry, keep=True)
        log(f"{file.path}: {how} from {path}")
        return True
    return False
