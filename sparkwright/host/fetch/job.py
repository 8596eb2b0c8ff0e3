"""One fetch: find what is on the disk, fetch the rest, put it in place, write the receipt."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

from sparkwright.host.fetch import contents, holes, place
from sparkwright.host.fetch.complete import complete
from sparkwright.host.fetch.downloaders import Libraries
from sparkwright.host.fetch.errors import Failed, Temporary, size
from sparkwright.host.fetch.existing import Existing
from sparkwright.host.fetch.progress import PEERS, Progress, log
from sparkwright.host.fetch.request import ExpectedContents, FetchFile, FetchRequest
from sparkwright.host.fetch.transfer import Transfer
from sparkwright.host.fetch.workspace import Workspace
from sparkwright.host.lib import receipt
from sparkwright.host.lib.receipt import Receipt
from sparkwright.host.lib.records import encode


def fetch(request: FetchRequest, runtime: Path | None, progress: Progress, stop: Event) -> str:
    """Complete a destination. Returns the message of success; raises Failed otherwise."""
    new_parent = not Path(request.destination).parent.exists()
    stage = place.Stage(request)
    with stage.lock(request.state_dir) as lock:
        progress.start()
        # Another run may have completed it before this one got the lock.
        message = complete(request, progress)
        if message is None:
            message = _fetch(Workspace(request, progress, stop), runtime, lock, new_parent)
        stage.remove()
    return message


def _fetch(work: Workspace, runtime: Path | None, lock: int, new_parent: bool) -> str:
    request, progress, files = work.request, work.progress, work.request.files
    began = time.monotonic()
    progress.files_total = len(files)
    progress.bytes_total = sum(file.size for file in files)
    for file in files:
        place.real_directories(work.base, file.path)
    missing = Existing(work).missing(files)
    kept = _prepare(work, missing)
    if kept:
        log(f"kept {kept} bytes ({size(kept)}) of {progress.bytes_total}")
    if missing:
        libraries = None
        # The libraries can't be limited.
        if request.downloader != "http" and runtime is not None and request.limit is None:
            libraries = Libraries(request, runtime, work.stop, lock)
        Transfer(work, libraries).run(missing)
    _finish(work, files, new_parent)
    received, took = progress.bytes_received, time.monotonic() - began
    peers = progress.received_by[PEERS]
    names = [
        name for name, count in progress.received_by.most_common() if count > 0 and name != PEERS
    ]
    return (
        f"complete: {len(files)} files, {size(progress.bytes_total)}, {size(received)} fetched "
        f"in {took:.1f} s ({size(received / took)}/s)"
        f"{' by ' + ' and '.join(names) if names else ''}"
        f"{f', {size(peers)} of it from peers' if peers else ''}, {size(kept)} kept: "
        f"{request.destination}"
    )


def _prepare(work: Workspace, missing: list[FetchFile]) -> int:
    """Create the parts and check that the rest fits on the disk. Returns the bytes kept."""
    stage, headroom, lacking = work.stage, work.request.headroom, 0
    parts = {stage.part(file.path) for file in missing}
    kept = parts | {holes.map_of(part) for part in parts}
    for old in sorted(stage.parts.rglob("*")):
        if old.is_file() and old not in kept:
            old.unlink()
    for file in missing:
        part = stage.part(file.path)
        part.parent.mkdir(parents=True, exist_ok=True)
        holes.prepare(part, file.size, mapped=stage.mapped)
        gap = holes.total(holes.missing(part, file.size))
        work.progress.present(file.path, file.size - gap)
        # Where files can't have holes, the whole part takes its place from the start.
        lacking += min(gap, max(0, file.size - holes.allocated(part)))
    if missing and stage.mapped:
        log(
            f"the file system of {work.destination.parent} does not tell holes from data: what is "
            "fetched is kept in maps, and large files are fetched by plain HTTP"
        )
    free = stage.free()
    if missing and free < lacking + headroom:
        raise Failed(
            f"{work.request.repo} needs {size(lacking)} more on the file system of "
            f"{work.destination.parent} and {size(headroom)} must stay free there, but only "
            f"{size(free)} are free. Free {size(lacking + headroom - free)} or put the models on "
            "a larger file system."
        )
    work.progress.bytes_kept = work.progress.bytes_done
    return work.progress.bytes_kept


def _finish(work: Workspace, files: tuple[FetchFile, ...], new_parent: bool) -> None:
    """Check the contents, write the receipt, and give the directory its name."""
    request, base, owner = work.request, work.base, work.owner
    names = [file.path for file in files]
    faults = contents.faults(base, names, request.expect or ExpectedContents())
    if faults:
        raise Failed(
            f"{request.repo}@{request.revision[:12]} is complete, but not what the catalog "
            f"expects: {'; '.join(faults)}. Nothing was put in place. Choose another revision."
        )
    work.progress.state = "verifying"
    directories = {base, *(d for file in files for d in (base / file.path).parents)}
    for directory in sorted(d for d in directories if d == base or base in d.parents):
        owner.directory(directory)
        place.sync(directory)
    entries = {name: work.verified[name] for name in names}
    written = Receipt(request.repo, request.endpoint, request.revision, entries)
    place.write_json(base / receipt.NAME, encode(written))
    owner.file(base / receipt.NAME)
    place.sync(base)
    if new_parent:
        owner.directory(work.destination.parent)
    if not work.repairs:
        base.rename(work.destination)
    place.sync(work.destination.parent)
    wrong = receipt.check(request.destination, request.revision)
    if wrong is not None:
        raise Temporary(f"{request.destination}: {wrong}: it was changed meanwhile. Run again.")
    place.report_extras(work.destination, entries)
