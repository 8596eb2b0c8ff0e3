"""Runs of the program, from the request to the exit code, and the fetch of a repository: find what
is on the disk, fetch the rest, put it in place, write the receipt."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from sparkwright.host.fetch import contents, existing, workspace
from sparkwright.host.fetch.holes import total
from sparkwright.host.fetch.messages import FAILED, OK, Failed, log, size, text
from sparkwright.host.fetch.progress import PEERS, Progress
from sparkwright.host.fetch.request import FetchFile, FetchRequest, PullRequest, read
from sparkwright.host.fetch.transfer import Libraries, Transfer
from sparkwright.host.lib import files, receipt

_Request = TypeVar("_Request", FetchRequest, PullRequest)


def run(path: Path, runtime: Path | None) -> int:
    """Fetch what a request says. Returns the exit code."""
    return carry_out(path, FetchRequest, partial(fetch, runtime=runtime))


def carry_out(
    path: Path, kind: type[_Request], work: Callable[[_Request, Progress, Event], str]
) -> int:
    """Carry out a request, and write how far it is to progress.json in its state directory.

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
    """Complete a destination. Returns the message of success; raises Failed otherwise."""
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
        missing = existing.missing(work)
        kept = _prepare(work, missing)
        if kept:
            log(f"kept {kept} bytes ({size(kept)}) of {every}")
        if missing:
            libraries = None
            # The libraries can't be limited.
            if request.downloader != "http" and runtime is not None and request.limit is None:
                libraries = Libraries(work, runtime, lock)
            Transfer(work, libraries).run(missing)
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
    """Create the parts and check that the rest fits on the disk. Returns the bytes kept."""
    headroom, lacking = work.request.headroom, 0
    parts = {file: work.part(file) for file in missing}
    kept = {path for part in parts.values() for path in (part.path, part.map)}
    for old in work.parts.rglob("*"):
        if old.is_file() and old not in kept:
            old.unlink()
    work.parts.mkdir(exist_ok=True)
    for file, part in parts.items():
        part.prepare(mapped=work.mapped)
        gap = total(part.missing())
        work.progress.present(file.path, file.size - gap)
        # Where files can't have holes, the whole part takes its place from the start.
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
