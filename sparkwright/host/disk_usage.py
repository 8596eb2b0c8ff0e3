"""Models, images and what belongs to them on a host: listed with sizes, and pruned on request.

Runs on the host as root (roles/remote.py). A release under ``services/<name>/releases`` says in
its compose file which directories and which image it needs; what is named by no kept release and
not wanted by the plan is not needed.

Request: {"models_root", "services_root", "wanted": [directories and images of the plan],
"keep_releases": releases kept of each service, "prune": bool}.
Answer: {"things": [{kind, name, path, size, frees, used_by, fault, removed}], "foreign": [paths]}.
Sizes are bytes on the disk; ``frees`` leaves out what is shared with another revision.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from sparkwright.host.lib import receipt

REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: Names that only sparkwright gives: made of a digest, or of a commit and a digest.
_OURS = re.compile(r":(sha256-[0-9a-f]{64}|[0-9a-f]{12}-[0-9a-f]{12})$")


def disk_usage(place: Path) -> tuple[int, int]:
    """Bytes on the disk below a path, and those of files that have no other name."""
    total = alone = 0
    for directory, _, names in os.walk(place):
        for name in names:
            try:
                stat = Path(directory, name).lstat()
            except OSError:
                continue
            total += stat.st_blocks * 512
            alone += stat.st_blocks * 512 if stat.st_nlink == 1 else 0
    return total, alone


def releases(services_root: Path, keep: int) -> tuple[dict[str, str], list[Path]]:
    """Text of each kept release's compose file by its name, and the releases beyond."""
    kept: dict[str, str] = {}
    beyond: list[Path] = []
    for home in sorted(services_root.glob("services/*")):
        links = [home / name for name in ("current", "good")]
        needed = [link.readlink().name for link in links if link.is_symlink()]
        current = needed[0] if needed else None
        every = sorted(
            (path for path in home.glob("releases/*") if path.is_dir()),
            key=lambda path: (path.name in needed, path.stat().st_mtime),
            reverse=True,
        )
        for n, path in enumerate(every):
            if n >= max(1, keep) and path.name not in needed:
                beyond.append(path)
                continue
            try:
                text = (path / "compose.yaml").read_text()
            except OSError:
                continue
            kept[f"{home.name} {path.name}{' (current)' if path.name == current else ''}"] = text
    return kept, beyond


def our_images() -> list[str]:
    """Our images in Docker."""
    command = ["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [name for name in done.stdout.splitlines() if _OURS.search(name)]


def docker_images() -> dict[str, int]:
    """Our images in Docker, with their unpacked size."""
    found = {}
    for name in our_images():
        seen = subprocess.run(
            ["docker", "image", "inspect", "--format", "{{.Size}}", name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        found[name] = int(seen.stdout.strip() or 0)
    return found


def being_fetched(stage: Path) -> bool:
    """Whether a fetch holds a stage."""
    try:
        holder = json.loads((stage / "holder.json").read_text())
        return b"fetch.py" in Path(f"/proc/{int(holder['pid'])}/cmdline").read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def things(request: dict[str, Any], kept: dict[str, str]) -> list[dict[str, Any]]:
    """Everything of ours, with who needs it."""
    root, services = Path(request["models_root"]), Path(request["services_root"])
    wanted = set(request["wanted"])
    found: list[dict[str, Any]] = []

    def add(kind: str, name: str, path: Path, key: str, fault: str | None = None) -> None:
        used = [release for release, text in kept.items() if f'"{key}"' in text]
        if key in wanted:
            used.append("the plan")
        size, frees = disk_usage(path)
        one = {"kind": kind, "name": name, "path": str(path), "size": size, "frees": frees}
        found.append({**one, "used_by": used, "fault": fault, "removed": False})

    for place in sorted(root.glob("*/*")):
        if REVISION.fullmatch(place.name) and place.is_dir() and not place.is_symlink():
            name = f"{place.parent.name.replace('--', '/', 1)}@{place.name[:12]}"
            # A directory without a receipt is somebody's own, or half a fetch of long ago.
            known = receipt.read(str(place))
            fault = receipt.check(str(place), place.name) if known else "has no receipt"
            add("model", name, place, str(place), fault)
    for stage in sorted([*root.glob("*/.staging-*"), *services.glob("images/.staging-*")]):
        used = ["a fetch that runs"] if being_fetched(stage) else []
        add("unfinished", f"{stage.parent.name}@{stage.name[9:21]}", stage, str(stage))
        found[-1]["used_by"] = used or found[-1]["used_by"]
    for store in sorted(services.glob("images/*")):
        if REVISION.fullmatch(store.name):
            add("image parts", f"sha256:{store.name[:12]}", store, str(store))
    for home in sorted(services.glob("runtime/*"), key=lambda path: path.stat().st_mtime)[:-2]:
        add("runtime", home.name, home, str(home))
    for name, size in docker_images().items():
        used = [release for release, text in kept.items() if f'"{name}"' in text]
        used += ["the plan"] if name in wanted else []
        one = {"kind": "image", "name": name, "path": name, "size": size, "frees": size}
        found.append({**one, "used_by": used, "fault": None, "removed": False})
    return found


def remove(thing: dict[str, Any]) -> str | None:
    """Remove one thing. Returns what stands in the way."""
    if thing["kind"] == "image":
        done = subprocess.run(
            ["docker", "image", "rm", thing["path"]], capture_output=True, text=True, check=False
        )
        return done.stderr.strip().splitlines()[-1] if done.returncode else None
    place = Path(thing["path"])
    # First out of sight: a removal that is cut off leaves nothing that looks like a model.
    gone = place.with_name(f".removing-{place.name}")
    try:
        place.rename(gone)
        shutil.rmtree(gone)
        if thing["kind"] in ("model", "unfinished") and not any(place.parent.iterdir()):
            place.parent.rmdir()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return None


def main(request: dict[str, Any]) -> dict[str, Any]:
    """List, and remove what is not needed when asked to."""
    root, services = Path(request["models_root"]), Path(request["services_root"])
    kept, beyond = releases(services, request["keep_releases"])
    found = things(request, kept)
    for path in beyond:
        size, frees = disk_usage(path)
        name = f"{path.parent.parent.name} {path.name}"
        one = {"kind": "release", "name": name, "path": str(path), "size": size, "frees": frees}
        found.append({**one, "used_by": [], "fault": None, "removed": False})
    if request["prune"]:
        for leftover in [*root.glob("*/.removing-*"), *services.glob("*/.removing-*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        for thing in found:
            # What has no receipt is not known to be ours: it is named, and left.
            if not thing["used_by"] and thing["fault"] != "has no receipt":
                thing["fault"] = remove(thing) or thing["fault"]
                thing["removed"] = not Path(thing["path"]).exists()
    known = {Path(thing["path"]).parent for thing in found}
    foreign = [str(path) for path in sorted(root.glob("*")) if path not in known]
    return {"things": found, "foreign": foreign}
