"""A local user tries to take a host out of its pools, or to say who stopped a service."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwright.host import maintenance, observe
from sparkwright.host.lib import files, homes, trusted
from sparkwright.host.maintenance import MaintenanceRequest
from sparkwright.host.observe import ObservationRequest
from tests.host.security.conftest import UID, as_user

MARK = '{"by": "root", "at": 1, "why": "it is mine now"}'
WRITE = 'printf %s "$1" > "$2"'


def _in_their_directory(users: Path) -> Path:
    as_user(WRITE, MARK, users / "maintenance.json")
    return users / "maintenance.json"


def _for_everybody_to_write(users: Path) -> Path:
    path = users.parent / "open"
    path.mkdir()
    path.chmod(0o777)
    as_user(WRITE, MARK, path / "maintenance.json")
    return path / "maintenance.json"


def _their_file_in_roots_directory(users: Path) -> Path:
    path = users.parent / "maintenance.json"
    path.write_text(MARK)
    os.chown(path, UID, UID)
    return path


def _a_link_of_theirs(users: Path) -> Path:
    os.chown(users, 0, 0)
    users.chmod(0o1777)  # like /tmp
    (users.parent / "real.json").write_text(MARK)
    as_user('ln -s "$1" "$2"', users.parent / "real.json", users / "maintenance.json")
    return users / "maintenance.json"


TRAPS = [
    _in_their_directory, _for_everybody_to_write, _their_file_in_roots_directory, _a_link_of_theirs,
]  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_a_mark_of_another_user_is_none(
    users: Path, trap: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    position = trap(users)
    assert json.loads(position.read_text())["by"] == "root"
    monkeypatch.setattr(homes, "MAINTENANCE", str(position))
    assert homes.maintenance() is None
    seen = observe.as_root(ObservationRequest(services_root=str(users)))
    assert seen["maintenance"] is None


def test_a_mark_is_not_written_where_a_user_decides(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (homes, maintenance):
        monkeypatch.setattr(module, "MAINTENANCE", str(users / "maintenance.json"))
    request = MaintenanceRequest(True, str(users))
    with pytest.raises(trusted.Exposed):
        maintenance.main(request)


def test_who_stopped_a_service_is_roots_to_say(users: Path, folder: Path) -> None:
    as_user(WRITE, MARK, users / homes.STOPPED)
    assert homes.stopped(users) is None
    files.write(folder / homes.STOPPED, MARK, 0o644)
    result = homes.stopped(folder)
    assert result is not None
    assert result.why == "it is mine now"
