"""The folder that an image is built from: fetched once on the controller, at a pinned commit.

The hosts need neither git nor a way to the repository; they get the files.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

#: More than this is no build context but a mistake in the catalog.
MOST_BYTES = 20 * 1024**2


class BuildContextError(Exception):
    """The repository could not be fetched, or has no such folder; says so in one line."""


def build_context(
    repository: str, commit: str, directory: str, cache: Path
) -> dict[str, tuple[str, bool]]:
    """Files of a folder of a repository at a commit: path -> (base64, executable).

    Raises:
        BuildContextError: in one line.
    """
    place = cache.resolve() / commit
    if not place.is_dir():
        _fetch(repository, commit, place)
    root = place / directory
    if not (root / "Dockerfile").is_file():
        raise BuildContextError(f"{repository}@{commit[:12]} has no {directory}/Dockerfile")
    files: dict[str, tuple[str, bool]] = {}
    total = 0
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        total += len(content)
        if total > MOST_BYTES:
            raise BuildContextError(f"{directory} of {repository} is larger than 20 MiB")
        name = str(PurePosixPath(path.relative_to(root)))
        files[name] = (base64.b64encode(content).decode(), bool(path.stat().st_mode & 0o100))
    return files


def _fetch(repository: str, commit: str, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which("git") is None:
        raise BuildContextError("git is not installed on this machine")
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        work = Path(folder) / "tree"
        _git(folder, "clone", "--quiet", "--no-checkout", repository, str(work))
        _git(str(work), "checkout", "--quiet", "--detach", commit)
        shutil.rmtree(work / ".git")
        work.rename(place)


def _git(where: str, *words: str) -> None:
    command = ["git", "-c", "core.symlinks=false", "-c", "credential.helper=", *words]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise BuildContextError(f"git {words[0]}: {said[-1] if said else 'failed'}")
