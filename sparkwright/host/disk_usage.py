"""List models, images and their parts on a host with their sizes, and prune them on request.

The program runs on the host as root. A release under ``services/<name>/releases`` names its
directories and its image in its Compose file. An item is needed only if a kept release or the plan
names the item.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sparkwright.host import service
from sparkwright.host.lib import docker, documents, files, processes, receipt, records, trusted


@records.dataclass(frozen=True)
class DiskUsageRequest:
    """Request to list a host's disk usage, and optionally to prune it.

    Attributes:
        planned: directories and images that the plan needs.
        keep_releases: number of releases to keep of each service.
        plan_known: False if the plan is broken; then the plan may need any model or image.
    """

    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    planned: tuple[str, ...] = ()
    keep_releases: int = 3
    plan_known: bool = True
    prune: bool = False


@records.dataclass(frozen=True)
class Item:
    """An item on a host's disk.

    Attributes:
        kind: model, image, image parts, unfinished, runtime or release.
        size: bytes on the disk.
        frees: bytes that removing the item frees.
        used_by: names of releases that need the item, and ``the plan`` or ``perhaps the plan``.
        fault: fault of the item, or the obstacle to its removal.
    """

    kind: str
    name: str
    path: str
    size: int
    frees: int
    used_by: tuple[str, ...] = ()
    fault: str | None = None
    removed: bool = False


@records.dataclass(frozen=True)
class DiskUsage:
    """sparkwright's items on a disk, and foreign paths in the models' directory."""

    things: tuple[Item, ...]
    foreign: tuple[str, ...]


REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: End of an image's name that only sparkwright makes, from a digest, or from a commit and a digest.
_OURS = re.compile(r":(sha256-[0-9a-f]{64}|[0-9a-f]{12}-[0-9a-f]{12})$")

#: Kinds of items that a plan can need before any release does.
_PLANNED = ("model", "image", "image parts")


def disk_usage(path: Path) -> tuple[int, int]:
    """Return the bytes on the disk below a path, and the bytes of files that have no other hard
    link.
    """
    total = alone = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                stat = Path(directory, name).lstat()
                total += stat.st_blocks * 512
                alone += stat.st_blocks * 512 if stat.st_nlink == 1 else 0
    return total, alone


def releases(services_root: Path, keep: int) -> tuple[dict[str, str], list[Path]]:
    """Return the Compose text of each kept release by name, and the paths of surplus releases."""
    kept: dict[str, str] = {}
    beyond: list[Path] = []
    for home in sorted(services_root.glob("services/*")):
        current, good = (files.target(home / name) for name in ("current", "good"))
        needed = [name for name in (current, good) if name]
        every = sorted(
            (path for path in home.glob("releases/*") if path.is_dir()),
            key=lambda path: (path.name in needed, path.stat().st_mtime),
            reverse=True,
        )
        for number, path in enumerate(every):
            if number >= max(1, keep) and path.name not in needed:
                beyond.append(path)
            elif (text := documents.text(path / "compose.yaml")) is not None:
                now = " (current)" if path.name == current else ""
                kept[f"{home.name} {path.name}{now}"] = text
    return kept, beyond


def our_images() -> list[str]:
    """Return the names of sparkwright's images in Docker, sorted: Docker's own order varies."""
    return sorted(name for name in docker.image_names() if _OURS.search(name))


def items(request: DiskUsageRequest) -> Iterator[Item]:
    """List sparkwright's items with their users, which are found by name in the releases' texts."""
    root, services = Path(request.models_root), Path(request.services_root)
    kept, beyond = releases(services, request.keep_releases)

    def used_by(kind: str, key: str) -> tuple[str, ...]:
        used = tuple(release for release, text in kept.items() if f'"{key}"' in text)
        if not request.plan_known and not used and kind in _PLANNED:
            return ("perhaps the plan",)
        return (*used, "the plan") if key in request.planned else used

    def item(kind: str, name: str, path: Path, fault: str | None = None) -> Item:
        return Item(kind, name, str(path), *disk_usage(path), used_by(kind, str(path)), fault)

    for folder in sorted(root.glob("*/*")):
        if REVISION.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            name = f"{folder.parent.name.replace('--', '/', 1)}@{folder.name[:12]}"
            # A directory without a receipt is a user's own, or an old interrupted fetch.
            fetched = receipt.read(str(folder))
            fault = receipt.check(str(folder), folder.name) if fetched else "has no receipt"
            yield item("model", name, folder, fault)
    for stage in sorted([*root.glob("*/.staging-*"), *services.glob("images/.staging-*")]):
        unfinished = item("unfinished", f"{stage.parent.name}@{stage.name[9:21]}", stage)
        holder = documents.read(stage / "holder.json") or {}
        runs = processes.runs(holder.get("pid"), "fetch.py")
        yield records.replace(unfinished, used_by=("a running fetch",)) if runs else unfinished
    for store in sorted(services.glob("images/*")):
        if REVISION.fullmatch(store.name):
            yield item("image parts", f"sha256:{store.name[:12]}", store)
    for home in sorted(services.glob("runtime/*"), key=lambda path: path.stat().st_mtime)[:-2]:
        yield item("runtime", home.name, home)
    for name in our_images():
        size = int((docker.image(name, timeout=None) or {}).get("Size") or 0)
        yield Item("image", name, name, size, size, used_by("image", name))
    for path in beyond:
        yield item("release", f"{path.parent.parent.name} {path.name}", path)


def remove(item: Item) -> str | None:
    """Remove one item. Return the obstacle, or None."""
    if item.kind == "image":
        done = docker.docker("image", "rm", item.path)
        return None if done.ok else done.message
    path = Path(item.path)
    if item.kind == "release" and (left := remove_kv_caches([path])):
        return left[0]
    # Rename the item first: an interrupted removal must leave nothing that looks like a model.
    gone = path.with_name(f".removing-{path.name}")
    try:
        path.rename(gone)
        shutil.rmtree(gone)
        if item.kind in ("model", "unfinished") and not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return None


def remove_kv_caches(releases: Iterable[Path]) -> list[str]:
    """Remove the KV caches that releases keep on disks. Return the directories that stay, with the
    reasons.

    A release's record names the directory. Since root removes the directory, the service must own
    the directory.
    """
    left = []
    for release in releases:
        home = release.parent.parent
        record = service.kept(home, release.name)
        if record is None or record.offload_directory is None:
            continue
        parent = Path(record.offload_directory)
        own = parent.parts[-2:] == ("sparkwright-kv", home.name) and parent.is_absolute()
        if reason := _remove_cache(record.offload_directory, release.name, own=own):
            left.append(f"{record.offload_directory}/{release.name}: {reason}")
    return left


def _remove_cache(directory: str, name: str, *, own: bool) -> str | None:
    """Remove a KV cache from a directory. Return the obstacle, or None."""
    try:
        with trusted.directory(directory if own else "/") as folder:
            # Remove by descriptor: nobody can exchange the checked directory for a link.
            opened = f"/proc/self/fd/{folder}"
            if os.readlink(opened) != directory:  # noqa: PTH115
                return "the path is a link, or outside the service's KV caches"
            shutil.rmtree(f"{opened}/{name}", ignore_errors=True)
            return "the directory can't be removed" if os.path.lexists(f"{opened}/{name}") else None
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{error.filename} {error.strerror}"


def pruned(item: Item) -> Item:
    """Remove an item that nothing needs, and return its new state."""
    # An item without a receipt may belong to a user: the item is listed, and stays.
    if item.used_by or item.fault == "has no receipt":
        return item
    fault = remove(item)
    return records.replace(item, fault=fault or item.fault, removed=fault is None)


def main(request: DiskUsageRequest) -> DiskUsage:
    """List stored content, and remove unneeded content on request."""
    root, services = Path(request.models_root), Path(request.services_root)
    things = list(items(request))
    if request.prune:
        for leftover in [*root.glob("*/.removing-*"), *services.glob("*/.removing-*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        things = [pruned(thing) for thing in things]
    parents = {Path(thing.path).parent for thing in things}
    foreign = (str(path) for path in sorted(root.glob("*")) if path not in parents)
    return DiskUsage(tuple(things), tuple(foreign))
