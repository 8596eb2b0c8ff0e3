"""The folder that an image is built from: fetched once on the controller, at a pinned commit.

The hosts get the files, without git and without access to the repository.
"""

import base64
import hashlib
import json
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from sparkwright.documents.text_files import make_folder
from sparkwright.resolve.git import git
from sparkwright.resolve.messages import MESSAGES

#: A larger folder is not a build context but a mistake in the catalog.
MOST_BYTES = 20 * 1024**2
MOST_FILES = 1000
#: The controller's cache of fetched repositories.
CACHE = Path(".sparkwright/cache/build")
_SUBJECT = "build context"


def build_context(
    repository: str, commit: str, directory: str, cache: Path
) -> dict[str, tuple[str, bool]]:
    """Files of a folder of a repository at a commit: path -> (base64, executable).

    Raises:
        UserError: the repository can't be fetched, or has no such folder.
    """
    folder = cache.resolve() / commit
    if not folder.is_dir():
        _fetch(repository, commit, folder)
    root = folder / directory
    if not (root / "Dockerfile").is_file():
        facts = {"repository": repository, "commit": commit[:12], "directory": directory}
        raise MESSAGES.refusal("no-dockerfile", _SUBJECT, **facts)
    files: dict[str, tuple[str, bool]] = {}
    total = 0
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        total += path.stat().st_size
        if total > MOST_BYTES or len(files) == MOST_FILES:
            facts = {"repository": repository, "directory": directory}
            raise MESSAGES.refusal("large-context", _SUBJECT, most=MOST_FILES, **facts)
        content = path.read_bytes()
        name = str(PurePosixPath(path.relative_to(root)))
        files[name] = (base64.b64encode(content).decode(), bool(path.stat().st_mode & 0o100))
    return files


def digest(files: dict[str, tuple[str, bool]]) -> str:
    """sha256 (hex) of a context: of every path, content and executable bit."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def verify(files: dict[str, tuple[str, bool]], pinned: str | None, *, carried: bool) -> None:
    """Refuse a context that differs from the context in the lock.

    carried: whether the context comes from a bundle, which only the lock verifies; a checkout by
    this machine's git is the commit's content. Raises UserError.
    """
    if pinned is None and carried:
        raise MESSAGES.refusal("unpinned-context", _SUBJECT)
    if pinned is not None and digest(files) != pinned:
        raise MESSAGES.refusal("changed-context", _SUBJECT, pinned=pinned)


def _fetch(repository: str, commit: str, target: Path) -> None:
    make_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        work = Path(folder, "tree")
        arguments = ("clone", "--quiet", "--no-checkout", "--template=", repository, str(work))
        git(Path(folder), *arguments, shown=repository)
        git(work, "checkout", "--quiet", "--detach", commit, shown=repository)
        shutil.rmtree(work / ".git")
        work.rename(target)
