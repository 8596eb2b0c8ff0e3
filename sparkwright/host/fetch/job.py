"""Run the program from the request to the exit code, and fetch a repository: find the files that
are on the disk, fetch the other files, put all files in place, and write the receipt.

Files that are already on this host are not fetched. Besides the destination and other revisions,
the request names directories that the user already has: a plain download, a cache, another layout.
Files in these directories are found by the hash of their content; names and paths do not matter.
The owners may change these files later, so root hashes and keeps its own copy, which takes no space
on a file system that can clone files (Btrfs, XFS). A file is hard linked only if root alone can
write to it and to every directory above it. The user's directories are not changed.
"""

import fcntl
import os
import shutil
import signal
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from threading import Event
from typing import TypeVar

from sparkwright.host.fetch import contents, holes, transfer, verify, workspace
from sparkwright.host.fetch.messages import FAILED, OK, Failed, check, log, size, text
from sparkwright.host.fetch.progress import PEERS, Progress
from sparkwright.host.fetch.request import FetchFile, FetchRequest, PullRequest, read
from sparkwright.host.lib import files, receipt, trusted
from sparkwright.host.lib.receipt import ReceiptEntry

#: Depth of the search below the given directories: a home has many files.
_DEPTH = 7
_BUFFER = 4 << 20
#: Result for a hard link; the other results are "cloned" and "copied".
_LINKED = "linked"
_FICLONE = 0x40049409  # linux/fs.h
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def missing_files(work: workspace.Workspace) -> list[FetchFile]:
    """Return the files to fetch, the largest first.

    The other files were found in the target directory, in other revisions, or in the directories
    that the request names.
    """
    state, adopt, absent = work.receipts(), work.request.adopt, list(work.request.files)
    others = {
        directory: revision.files
        for directory in sorted(work.destination.parent.glob("*"))
        if directory != work.destination and trusted.exposed(directory) is None
        if (revision := receipt.read(str(directory))) is not None
    }

    def keep(file: FetchFile) -> bool:
        return _keep(work, file, state.get(file.path)) or any(
            _link(work, file, directory, entries) for directory, entries in others.items()
        )

    def use(file: FetchFile) -> bool:
        return _use(work, file, _worth_copying(file, candidates))

    def failing(task: Callable[[FetchFile], bool]) -> list[FetchFile]:
        return [file for file, done in zip(absent, pool.map(task, absent), strict=True) if not done]

    work.progress.state = "verifying"
    # Leave some CPUs free: the host may be serving.
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        absent = failing(keep)
        if absent and adopt:
            work.progress.state = "looking for earlier downloads"
            candidates = _candidates(adopt, absent)
            absent = failing(use)
    work.progress.state = "running"
    return sorted(absent, key=lambda file: -file.size)


def _keep(work: workspace.Workspace, file: FetchFile, record: ReceiptEntry | None) -> bool:
    """Keep a file of the target directory if its content is right. Returns whether the file was
    kept.
    """
    path = work.base / file.path
    if path.is_symlink():
        log(f"{file.path} is a symlink; replacing it by a regular file")
        return False
    if not path.is_file() or path.lstat().st_size != file.size:
        if path.exists():
            fault = "is a Git LFS pointer" if verify.is_pointer(path) else "has another size"
            log(f"{file.path} {fault}; fetching it")
        return False
    if reason := trusted.why(path.lstat()):
        log(f"{file.path} {reason}; replacing it by a copy")
        return _use(work, file, [path])
    if record and workspace.same(file, record) and receipt.fault(str(path), record) is None:
        work.add(file, record)
        return True
    entry = verify.entry(file, path, work.stop)
    if isinstance(entry, str):
        log(f"{file.path}: {entry}; fetching it again")
        return False
    workspace.publish(path)
    work.add(file, entry, keep=True)
    return True


def _link(
    work: workspace.Workspace, file: FetchFile, directory: Path, entries: dict[str, ReceiptEntry]
) -> bool:
    """Link a file of another revision if that revision's receipt has the same content."""
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


def _use(work: workspace.Workspace, file: FetchFile, paths: list[Path]) -> bool:
    """Use the first candidate that has the right content.

    Root's own copy is hashed in its final place, so no other user can change it after the check.
    """
    copy = work.part(file).path.with_suffix(".copy")
    for path in paths:
        workspace.real_directories(work.parts, file.path)
        room = work.free() - work.request.headroom
        how = _take(path, copy, file.size, room, work.stop)
        if how is None:
            continue
        entry = verify.entry(file, copy, work.stop)
        if isinstance(entry, str):
            copy.unlink()
            continue
        # A hard-linked file already belongs to root and is on the disk: do not publish it again.
        work.put(copy, file, entry, published=how == _LINKED)
        log(f"{file.path}: {how} from {path}")
        return True
    return False


def _candidates(roots: tuple[str, ...], files: list[FetchFile]) -> dict[int, list[Path]]:
    """Return, by size, the regular files below the roots that have the size of a requested file.

    A hub's cache keeps content in ``blobs/`` under its hash and links in ``snapshots/``: the blobs
    are found like any other file, and links are not followed.
    """
    sizes = {file.size for file in files}
    paths: dict[int, list[Path]] = {}
    matching = (path for root in roots for path in sorted(Path("/").glob(root.lstrip("/"))))
    for root in dict.fromkeys(map(str, matching)):
        base = root.count("/")
        for directory, names, entries in os.walk(root):
            if directory.count("/") - base >= _DEPTH:
                names.clear()
            names[:] = [name for name in names if not name.startswith(".staging-")]
            for name in entries:
                path = Path(directory, name)
                with suppress(OSError):
                    size = 0 if path.is_symlink() else path.lstat().st_size
                    if size and size in sizes:
                        paths.setdefault(size, []).append(path)
    return paths


def _worth_copying(file: FetchFile, candidates: dict[int, list[Path]]) -> list[Path]:
    """Return the three most likely candidates; files with the requested hash or name come first.

    A small file is likely only if its name matches; a large file is always likely.
    """
    name, hashes = Path(file.path).name, {file.sha256, file.blob_id}
    paths = candidates.get(file.size, [])
    if file.size < 1 << 20:
        paths = [path for path in paths if path.name == name or path.name in hashes]
    return sorted(paths, key=lambda path: (path.name not in hashes, path.name != name))[:3]


def _take(source: Path, target: Path, size: int, room: int, stop: Event) -> str | None:
    """Link, clone or copy a file of ``size`` bytes. Returns ``linked``, ``cloned`` or ``copied``;
    None after a failure.

    The copy shares its blocks with the source if the file system can (a reflink).

    Args:
        room: bytes that a copy may take on the file system.
    """
    target.unlink(missing_ok=True)
    with suppress(OSError):
        # Only root can write to the file, and everybody can read it: a hard link is enough.
        mine = os.geteuid() == 0 and trusted.exposed(source) is None
        if mine and source.lstat().st_mode & 0o004:
            os.link(source, target, follow_symlinks=False)
            return _LINKED
    try:
        with os.fdopen(os.open(source, _READ), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size != size:
                return None
            with os.fdopen(os.open(target, _NEW, 0o600), "wb", buffering=0) as copy:
                return _copy(file, copy, size, room, stop)
    except OSError as error:
        log(f"cannot copy {source}: {error.strerror}")
        return None


def _copy(file: FileIO, copy: FileIO, size: int, room: int, stop: Event) -> str | None:
    """Copy exactly ``size`` bytes, even if the source changes meanwhile. Returns ``cloned`` or
    ``copied``; None without enough room for a copy.
    """
    with suppress(OSError):
        fcntl.ioctl(copy.fileno(), _FICLONE, file.fileno())
        copy.truncate(size)
        return "cloned"
    left = size if size <= room else 0
    while left and (piece := file.read(min(left, _BUFFER))):
        # If the source has become shorter, the copy ends here, and its hash will be wrong.
        check(stop)
        left -= copy.write(piece)
    return "copied" if size <= room else None


_Request = TypeVar("_Request", FetchRequest, PullRequest)


def run(path: Path, runtime: Path | None) -> int:
    """Carry out a request's fetches. Returns the exit code."""
    return carry_out(path, FetchRequest, partial(fetch, runtime=runtime))


def carry_out(
    path: Path, kind: type[_Request], work: Callable[[_Request, Progress, Event], str]
) -> int:
    """Carry out a request, and write its progress to progress.json in its state directory.

    Returns the exit code; the last line on stderr is the message.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    progress: Progress | None = None
    try:
        request = read(kind, path)
        how = request.fetch if isinstance(request, PullRequest) else request
        progress = Progress(Path(how.state_dir), "the bundle" if how.offline else "a neighbour")
        message, code = work(request, progress, stop), OK
    except Failed as error:
        message, code = str(error), FAILED
    except OSError as error:
        message, code = f"{error.filename or 'the disk'}: {error.strerror or error}.", FAILED
    except Exception as error:
        # A bug: name the place, without a traceback.
        import traceback

        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{Path(frame.filename).name}:{frame.lineno}"
        message, code = f"internal error in {line}: {type(error).__name__}: {error}", FAILED
    if progress is not None:
        progress.end("done" if code == OK else "failed", message)
    log(message)
    return code


def fetch(
    request: FetchRequest, progress: Progress, stop: Event, runtime: Path | None = None
) -> str:
    """Complete a destination. Returns the success message; raises Failed on failure."""
    work = workspace.Workspace(request, progress, stop)
    destination = work.destination
    if destination.is_symlink() or (destination.exists() and not destination.is_dir()):
        kind = "symlink" if destination.is_symlink() else "file"
        raise Failed("destination", path=destination, kind=kind)
    began, every = time.monotonic(), sum(file.size for file in request.files)
    progress.bytes_total = every
    with work.lock() as lock:
        progress.start()
        for file in request.files:
            workspace.real_directories(work.base, file.path)
        missing = missing_files(work)
        kept = _prepare(work, missing)
        if kept:
            log(f"{kept} bytes ({size(kept)}) of {every} are already on this host")
        if missing:
            libraries = None
            # The libraries have no rate limit.
            if request.downloader != "http" and runtime is not None and request.limit is None:
                libraries = transfer.Libraries(work, runtime, lock)
            transfer.Transfer(work, libraries).run(missing)
        _finish(work)
        shutil.rmtree(work.root, ignore_errors=True)
    received, seconds = progress.received_by.total(), time.monotonic() - began
    peers, by = progress.received_by[PEERS], progress.received_by.most_common()
    names = [name for name, count in by if count > 0 and name != PEERS]
    return text(
        "complete", count=len(request.files), total=size(every), received=size(received),
        seconds=seconds, rate=size(received / seconds), kept=size(kept),
        by=f" by {' and '.join(names)}" if names else "", path=request.destination,
        peers=f", {size(peers)} of it from peers" if peers else "",
    )  # fmt: skip


def _prepare(work: workspace.Workspace, missing: list[FetchFile]) -> int:
    """Create the parts, and check that the missing bytes fit on the disk. Returns the bytes
    kept.
    """
    headroom, lacking = work.request.headroom, 0
    parts = {file: work.part(file) for file in missing}
    kept = {path for part in parts.values() for path in (part.path, part.map)}
    for old in work.parts.rglob("*"):
        if old.is_file() and old not in kept:
            old.unlink()
    work.parts.mkdir(exist_ok=True)
    for file, part in parts.items():
        part.prepare(mapped=work.mapped)
        gap = holes.total(part.missing())
        work.progress.present(file.path, file.size - gap)
        # On a file system without holes, a part takes its full size from the start.
        lacking += min(gap, max(0, file.size - part.path.lstat().st_blocks * 512))
    parent, free = work.destination.parent, work.free()
    if missing and work.mapped:
        log(text("mapped", parent=parent))
    if missing and free < lacking + headroom:
        raise Failed(
            "no_room", repo=work.request.repo, lacking=size(lacking), parent=parent,
            headroom=size(headroom), free=size(free), short=size(lacking + headroom - free),
        )  # fmt: skip
    return work.progress.bytes_done


def _finish(work: workspace.Workspace) -> None:
    """Check the contents, write the receipt, and give the directory its name."""
    request, base = work.request, work.base
    names = [file.path for file in request.files]
    if faults := contents.faults(base, names, request.expect):
        commit = request.revision[:12]
        raise Failed("contents", repo=request.repo, commit=commit, faults="; ".join(faults))
    work.progress.state = "verifying"
    directories = {base, *(d for name in names for d in (base / name).parents)}
    for directory in sorted(d for d in directories if d == base or base in d.parents):
        workspace.publish(directory)
    entries = {name: work.verified[name] for name in names}
    written = receipt.Receipt(request.repo, request.endpoint, request.revision, entries)
    files.write_record(base / receipt.NAME, written)
    if base != work.destination:
        base.rename(work.destination)
    workspace.publish(work.destination.parent, own=False)
    if fault := receipt.check(request.destination, request.revision):
        raise Failed("changed_meanwhile", path=request.destination, fault=fault)
    work.report_extras(entries)
