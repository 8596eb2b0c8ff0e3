"""A local user tries to hold or replace the lab's locks, or to make root write through them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import lock_file
from lab.holding import held
from lab.real_engine import build
from tests.host.security.conftest import UID, as_user


def _for_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o1777)
    as_user(': > "$1/holder"', folder)


def _users(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, UID, UID)


def _link(folder: Path) -> None:
    (folder.parent / "victim").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "victim")


@pytest.mark.parametrize("trap", [_for_all, _users, _link])
def test_a_lock_in_an_unsafe_folder_is_refused(folder: Path, trap: Callable[[Path], None]) -> None:
    file = folder / "lab/holder"
    trap(file.parent)
    with pytest.raises(SystemExit, match=f"{file.parent} .*: remove it"):
        lock_file.opened(file)
    with pytest.raises(SystemExit, match="remove it"), held("tests", file=file):
        pass
    assert not list(folder.glob("victim/*"))


def test_a_lock_that_is_a_link_is_not_followed(folder: Path) -> None:
    victim = folder / "victim"
    victim.write_text("root's own")
    (folder / "lab").mkdir(mode=0o700)
    for name in ("lab/holder", "lock"):
        (folder / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        lock_file.opened(folder / "lab/holder")
    with pytest.raises(OSError, match="symbolic links"), build._only_one(folder):
        pass
    assert victim.read_text() == "root's own"


def test_only_root_can_write_to_the_folder_of_the_labs_lock() -> None:
    assert lock_file.PLACE.parent == Path("/run")
    assert lock_file.PLACE.parent.stat().st_uid == 0
    assert not lock_file.PLACE.parent.stat().st_mode & 0o022
