"""FAKE for the git repository of vllm-dflash, from which the TurboQuant image is built.

The card's instructions are to build `turboquant/` of that repository. The fake has a Dockerfile of
the same shape over the fake image, in a bare repository that any static HTTP server can serve.
Author and dates are fixed, so the commit is the same on every machine.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAME = "AEON-7/vllm-dflash"
_WHEN = "2026-04-18T12:00:00Z"
_FILES = {
    "README.md": "FAKE for the repository of vllm-dflash (sparkwright lab).\n",
    "turboquant/Dockerfile": (
        "# FAKE: the real one installs the TurboQuant plugin.\n"
        "FROM ghcr.io/aeon-7/vllm-dflash:latest\n"
        "COPY turboquant-fake /etc/turboquant-fake\n"
        'LABEL dev.sparkwright.fake.turboquant="yes"\n'
    ),
    "turboquant/turboquant-fake": "TurboQuant 0.2.0 (fake)\n",
}


def make(directory: Path) -> str:
    """Make the bare repository below a directory, unless it exists; return its commit."""
    bare = directory / NAME
    if not (bare / "info/refs").is_file():
        bare.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=bare.parent, prefix=".new-") as folder:
            work = Path(folder)
            _git(work, "init", "--quiet", "--initial-branch=main")
            for name, text in _FILES.items():
                (work / name).parent.mkdir(exist_ok=True)
                (work / name).write_text(text)
            _git(work, "add", ".")
            _git(work, "commit", "--quiet", "--message", "Fake")
            made = work / "bare"
            _git(work, "clone", "--quiet", "--bare", folder, str(made))
            _git(made, "update-server-info")
            shutil.rmtree(bare, ignore_errors=True)
            shutil.move(made, bare)
    return (bare / "info/refs").read_text().split()[0]


def _git(where: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_NAME": "sparkwright lab" for role in ("AUTHOR", "COMMITTER")}
    who |= {f"GIT_{role}_EMAIL": "lab@example.invalid" for role in ("AUTHOR", "COMMITTER")}
    who |= {f"GIT_{role}_DATE": _WHEN for role in ("AUTHOR", "COMMITTER")}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(where),
        "GIT_CONFIG_NOSYSTEM": "1",
        **who,
    }
    subprocess.run(["git", *arguments], cwd=where, env=environment, check=True, capture_output=True)
