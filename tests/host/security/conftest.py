"""A folder that every user can reach, and another user of this machine."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.fetch.conftest import Fetch, fetch, hub, leech
from tests.host.peer_sharing import Seed, peer_sharing

__all__ = ["fetch", "hub", "leech"]
#: nobody: a local user without root.
UID = 65534


def as_user(script: str, *arguments: object) -> None:
    """Run a shell script as another user; its arguments are $1, $2, ..."""
    command = ["/bin/sh", "-euc", script, "sh", *map(str, arguments)]
    subprocess.run(command, user=UID, group=UID, extra_groups=[], cwd="/", check=True)


def connecting(path: Path | str) -> str:
    """Error of a connection of another user to a Unix socket; empty on success."""
    script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    done = subprocess.run(
        ["/usr/bin/python3", "-ISc", script, str(path)], user=UID, group=UID, extra_groups=[],
        cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory of root that every user can list."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user, too")
    made = Path(tempfile.mkdtemp(prefix="sparkwright-security-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def users(folder: Path) -> Path:
    """A directory of the other user."""
    made = folder / "home"
    made.mkdir()
    os.chown(made, UID, UID)
    return made


@pytest.fixture
def fetching(fetch: Fetch, folder: Path) -> Fetch:
    """A fetch into a folder that another user can reach."""
    fetch.root = folder
    return fetch


@pytest.fixture
def seed(fetch: Fetch, tmp_path: Path) -> Iterator[Seed]:
    """A host that serves a directory of a model to its peers."""
    home = Fetch(fetch.hub, tmp_path / "host/opt")
    home.destination.mkdir(parents=True)
    for name in ("config.json", "other.json"):
        (home.destination / name).write_bytes(b"{}")
    with peer_sharing(home) as served:
        yield served
