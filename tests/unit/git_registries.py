"""Folders as git repositories."""

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Output of git in a folder."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def git_registry(folder: Path) -> Path:
    """A folder as a git repository with one commit of all that is in it."""
    git(folder, "init", "--quiet")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder
