"""Fetch job: find what is on the disk, fetch the rest, put it in place, write the receipt."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from threading import Event

from sparkwright.host.fetch import contents, existing, holes, workspace
from sparkwright.host.fetch.errors import Failed, Temporary, size, text
from sparkwright.host.fetch.progress import PEERS, Progress, log
from sparkwright.host.fetch.request import ExpectedContents, FetchFile, FetchRequest
from sparkwright.host.fetch.transfer import Libraries, Transfer
from sparkwright.host.fetch.workspace import Workspace, publish, sync
from sparkwright.host.lib import receipt
from sparkwright.host.lib.receipt import Receipt
from sparkwright.host.lib.records import encode


def fetch(request: FetchRequest, progress: Progress, stop: Event, runtime: Path | None) -> str:
    """Complete a destination. Returns the message of success; raises Failed otherwise."""
    work = Workspace(request, progress, stop)
    new_parent = not work.destination.parent.exists()
    with work.lock() as lock:
        progress.start()
        # Another run may have completed it before this one got the lock.
        message = workspace.complete(request, progress)
        if message is None:
            message = _fetch(work, runtime, lock, new_parent)
        shutil.rmtree(work.root, ignore_errors=True)
    return message


def _fetch(work: Workspace, runtime: Path | None, lock: int, new_parent: bool) -> str:
    request, progress = work.request, work.progress
    began = time.monotonic()
    total = sum(file.size for file in request.files)
    progress.show(files_total=len(request.files), bytes_total=total)
    for file in request.files:
        workspace.real_directories(work.base, file.path)
    missing = existing.missing(work)
    kept = _prepare(work, missing)
    if kept:
        log(f"kept {kept} bytes ({size(kept)}) of {total}")
    if missing:
        libraries = None
        # The libraries can't be limited.
        if request.downloader != "http" and runtime is not None and request.limit is None:
            libraries = Libraries(request, runtime, work.stop, lock)
        Transfer(work, libraries).run(missing)
    _finish(work, new_parent)
    received, seconds = progress.bytes_received, time.monotonic() - began
    peers, by = progress.received_by[PEERS], progress.received_by.most_common()
    names = [name for name, count in by if count > 0 and name != PEERS]
    return text(
        "complete", count=len(request.files), total=size(total), received=size(received),
        seconds=seconds, rate=size(received / seconds), kept=size(kept),
        by=f" by {' and '.join(names)}" if names else "", path=request.destination,
        peers=f", {size(peers)} of it from peers" if peers else "",
    )  # fmt: skip


def _prepare(work: Workspace, missing: list[FetchFile]) -> int:
    """Create the parts and check that the rest fits on the disk. Returns the bytes kept."""
    headroom, lacking = work.request.headroom, 0
    parts = {work.part(file.path) for file in missing}
    kept = parts | {holes.map_of(part) for part in parts}
    for old in sorted(work.parts.rglob("*")):
        if old.is_file() and old not in kept:
            old.unlink()
    for file in missing:
        part = work.part(file.path)
        part.parent.mkdir(parents=True, exist_ok=True)
        holes.prepare(part, file.size, mapped=work.mapped)
        gap = holes.total(holes.missing(part, file.size))
        work.progress.present(file.path, file.size - gap)
        # Where files can't have holes, the whole part takes its place from the start.
        lacking += min(gap, max(0, file.size - holes.allocated(part)))
    parent, free = work.destination.parent, work.free()
    if missing and work.mapped:
        log(text("mapped", parent=parent))
    if missing and free < lacking + headroom:
        raise Failed(
            "no_room", repo=work.request.repo, lacking=size(lacking), parent=parent,
            headroom=size(headroom), free=size(free), short=size(lacking + headroom - free),
        )  # fmt: skip
    kept_bytes = work.progress.bytes_done
    work.progress.show(bytes_kept=kept_bytes)
    return kept_bytes


def _finish(work: Workspace, new_parent: bool) -> None:
    """Check the contents, write the receipt, and give the directory its name."""
    request, base = work.request, work.base
    names = [file.path for file in request.files]
    faults = contents.faults(base, names, request.expect or ExpectedContents())
    if faults:
        commit = request.revision[:12]
        raise Failed("contents", repo=request.repo, commit=commit, faults="; ".join(faults))
    work.progress.show(state="verifying")
    directories = {base, *(d for name in names for d in (base / name).parents)}
    for directory in sorted(d for d in directories if d == base or base in d.parents):
        publish(directory)
        sync(directory)
    entries = {name: work.verified[name] for name in names}
    written = Receipt(request.repo, request.endpoint, request.revision, entries)
    workspace.write_json(base / receipt.NAME, encode(written))
    publish(base / receipt.NAME)
    sync(base)
    if new_parent:
        publish(work.destination.parent)
    if base != work.destination:
        base.rename(work.destination)
    sync(work.destination.parent)
    fault = receipt.check(request.destination, request.revision)
    if fault is not None:
        raise Temporary("changed_meanwhile", path=request.destination, fault=fault)
    workspace.report_extras(work.destination, entries)
