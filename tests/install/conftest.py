"""Wheel and sdist, built from the checkout or taken from a release, and a user's venv.

SPARKWRIGHT_DIST is the folder of a release: `make release-check` checks the files in it.
"""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkwright import __version__
from tests.unit.builders import ROOT


def built(folder: Path, target: str, source: Path = ROOT) -> Path:
    """Build a wheel or an sdist with hatchling, without isolation and without an index."""
    arguments = [sys.executable, "-m", "hatchling", "build", "--target", target, "-d", str(folder)]
    done = subprocess.run(arguments, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


def _distribution(factory: pytest.TempPathFactory, target: str, suffix: str) -> Path:
    if folder := os.environ.get("SPARKWRIGHT_DIST"):
        return Path(folder, f"sparkwright-{__version__}{suffix}").resolve()
    return built(factory.mktemp(target), target)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return _distribution(tmp_path_factory, "wheel", "-py3-none-any.whl")


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this checkout."""
    return _distribution(tmp_path_factory, "sdist", ".tar.gz")


@dataclass(frozen=True)
class User:
    """A user with a venv and a home, and without the repository."""

    venv: Path
    home: Path

    def run(
        self, program: str, *arguments: str, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the venv in a folder, with any exit code."""
        return subprocess.run(
            [self.venv / "bin" / program, *arguments],
            cwd=folder or self.home,
            env={"PATH": f"{self.venv}/bin:{os.environ['PATH']}", "HOME": str(self.home)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip


@pytest.fixture(scope="session")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    """The wheel in an empty venv, with only the packages of the runtime's constraints."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "venv", with_pip=True)
    (folder / "home").mkdir()
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--no-input"]
    for arguments in (
        ("--require-hashes", "-r", str(ROOT / "constraints.txt")),
        ("--no-deps", "--no-index", str(wheel)),
    ):
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)
        if "from versions: none" in done.stderr:
            pytest.skip("no package index within reach")
        assert done.returncode == 0, done.stderr
    return User(folder / "venv", folder / "home")
