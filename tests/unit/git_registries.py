"""Folders as git repositories."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory


def git(folder: Path, *arguments: str) -> str:
    """Output of git in a folder."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def git_registry(folder: Path) -> Path:
    """Make a folder a git repository with one commit of all files; equal files share one copy."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    made = _made(tuple((path.relative_to(folder), path.read_bytes()) for path in files))
    shutil.copytree(Path(made.name, ".git"), folder / ".git")
    return folder


@cache
def _made(files: tuple[tuple[Path, bytes], ...]) -> TemporaryDirectory[str]:
    result = TemporaryDirectory()
    folder = Path(result.name)
    for path, content in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    git(folder, "init", "--quiet", "--template=")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    return result
