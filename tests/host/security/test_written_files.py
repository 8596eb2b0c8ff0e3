"""A local user tries to redirect root's writes: by links, directories, names in /tmp; or to
forge the running release, a stop or maintenance.
"""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwright.host import directories, jobs, lock, maintenance, observe
from sparkwright.host.directories import Directory
from sparkwright.host.jobs import Job
from sparkwright.host.lib import exclusive, files, homes, systemd, trusted
from sparkwright.host.lock import Owner
from sparkwright.host.maintenance import MaintenanceRequest
from sparkwright.host.observe import ObservationRequest
from tests.host.security.conftest import UID, as_user
from tests.libyaml import safe_load


@pytest.fixture
def victim(folder: Path) -> Path:
    """A directory with a file that only root may read or change."""
    made = folder / "victim"
    made.mkdir(mode=0o700)
    (made / "file").write_text("root's own")
    return made


def unharmed(victim: Path) -> bool:
    about = victim.stat()
    return (
        [path.name for path in victim.iterdir()] == ["file"]
        and (victim / "file").read_text() == "root's own"
        and (about.st_uid, about.st_mode & 0o777) == (0, 0o700)
    )


def _linked_directory(users: Path, victim: Path) -> Path:
    as_user('ln -s "$1" "$2"', victim, users / "state")
    return users / "state"


def _linked_above(users: Path, victim: Path) -> Path:
    as_user('mkdir "$2" && ln -s "$1" "$2/state"', victim, users / "a")
    return users / "a/state"


def _own_directory(users: Path, victim: Path) -> Path:
    as_user('mkdir "$2" && ln -s "$1/file" "$2/file"', victim, users / "state")
    return users / "state"


def _in_tmp(users: Path, victim: Path) -> Path:
    os.chown(users, 0, 0)
    users.chmod(0o1777)  # like /tmp
    return _linked_directory(users, victim)


@pytest.mark.parametrize("trap", [_linked_directory, _linked_above, _own_directory, _in_tmp])
def test_no_file_is_written_in_a_folder_that_a_user_controls(
    users: Path, victim: Path, trap: Callable[[Path, Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = trap(users, victim)
    for module in (homes, maintenance):
        monkeypatch.setattr(module, "MAINTENANCE", str(directory / "maintenance.json"))
    writes: tuple[Callable[[], object], ...] = (
        lambda: files.write(directory / "file", "new", 0o644),
        lambda: files.append(directory / "file", "more"),
        lambda: files.point(directory / "file", "elsewhere"),
        lambda: lock.take(directory / "below", Owner(token="t")),
        lambda: directories.main((Directory(f"{directory}/below", 0o777),)),
        lambda: exclusive.activate(directory, {"evening": "coder"}, "ann", ""),
        lambda: exclusive.mark(directory, "sparkwright-chat.service", asleep=True),
        lambda: maintenance.main(MaintenanceRequest(True, str(users))),
    )
    for write in writes:
        with pytest.raises(trusted.Exposed):
            write()
    assert files.read(directory / "file") is None
    assert unharmed(victim)


def _in_their_directory(users: Path, name: str, text: str) -> Path:
    as_user(WRITE, text, users / name)
    return users / name


def _for_everybody_to_write(users: Path, name: str, text: str) -> Path:
    path = users.parent / "open"
    path.mkdir(exist_ok=True)
    path.chmod(0o777)
    as_user(WRITE, text, path / name)
    return path / name


def _their_file_in_roots_directory(users: Path, name: str, text: str) -> Path:
    path = users.parent / name
    path.write_text(text)
    os.chown(path, UID, UID)
    return path


def _a_link_of_theirs(users: Path, name: str, text: str) -> Path:
    os.chown(users, 0, 0)
    users.chmod(0o1777)  # like /tmp
    (users.parent / name).write_text(text)
    as_user('ln -s "$1" "$2"', users.parent / name, users / name)
    return users / name


WRITE = 'printf %s "$1" > "$2"'
MARK = '{"by": "root", "at": 1, "why": "it is mine now"}'
#: File -> its text, and the program that reads it.
READ: dict[str, tuple[str, Callable[[Path], object]]] = {
    "maintenance.json": (MARK, lambda _: homes.maintenance()),
    homes.STOPPED: (MARK, homes.stopped),
    "exclusive.json": (
        '{"groups": {"evening": {"members": ["chat"]}}}', lambda path: exclusive.groups(path).groups
    ),
    "active.json": ('{"evening": {"service": "chat"}}', exclusive.active),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize(
    "trap",
    [_in_their_directory, _for_everybody_to_write, _their_file_in_roots_directory,
     _a_link_of_theirs],
)  # fmt: skip
def test_files_of_another_user_are_ignored(
    users: Path, trap: Callable[[Path, str, str], Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, read = READ[name]
    path = trap(users, name, text)
    assert path.read_text() == text
    monkeypatch.setattr(homes, "MAINTENANCE", str(path))
    assert not read(path.parent)
    seen = observe.as_root(ObservationRequest(services_root=str(users)))
    assert seen["maintenance"] is None
    # Root's own file is read.
    path = users.parent / "roots" / name
    files.write(path, text, 0o600)
    monkeypatch.setattr(homes, "MAINTENANCE", str(path))
    assert read(path.parent)


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 100000, '{"groups": 5}', '{"groups": {"evening": {"members": []}}}',
             json.dumps({"groups": {"evening": {"members": ["a"], "windows": [[1, 2]]}}})],
)  # fmt: skip
def test_a_torn_file_defines_no_group(folder: Path, text: str) -> None:
    files.write(folder / "exclusive.json", text, 0o600)
    assert exclusive.running(folder) == {}


def test_a_file_that_is_a_link_is_replaced_and_not_followed(folder: Path, victim: Path) -> None:
    for name in ("file", ".file.new"):
        (folder / name).symlink_to(victim / "file")
    assert files.write(folder / "file", "new", 0o644)
    assert not (folder / "file").is_symlink()
    assert (folder / "file").read_text() == "new"
    assert not files.write(folder / "file", "new", 0o644)
    (folder / "log").symlink_to(victim / "file")
    with pytest.raises(OSError, match="log"):
        files.append(folder / "log", "more")
    assert unharmed(victim)


def test_a_users_file_is_neither_trusted_nor_kept(folder: Path) -> None:
    file = folder / "file"
    file.write_text("new")
    file.chmod(0o644)
    os.chown(file, UID, UID)
    assert files.read(file) is None
    assert files.write(file, "new", 0o644)
    assert file.stat().st_uid == 0
    assert files.read(file) == "new"


def test_a_pipe_does_not_block_root(folder: Path) -> None:
    os.mkfifo(folder / "file")
    assert files.read(folder / "file") is None
    assert files.write(folder / "file", "new", 0o600)
    assert (folder / "file").read_text() == "new"


def test_no_directory_of_a_job_is_made_in_a_folder_that_a_user_controls(
    users: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "unit", lambda _: {})
    monkeypatch.setattr(systemd, "systemctl", lambda *_: None)
    started: list[str] = []
    monkeypatch.setattr(jobs, "run", lambda *arguments: started.append(arguments[0]))
    directory = _linked_directory(users, victim)
    job = Job("sparkwright-x", "a fetch", ("true",), writable=(f"{directory}/models",))
    with pytest.raises(SystemExit, match=f"a fetch: {users} belongs to user nobody"):
        jobs.start(job)
    assert started == []
    assert unharmed(victim)


@pytest.mark.parametrize("path", ["mine", "mine/below", "mine/below/file", "link/file", "none/x"])
def test_paths_that_only_root_can_change_are_not_exposed(folder: Path, path: str) -> None:
    (folder / "mine/below").mkdir(parents=True)
    (folder / "mine/below/file").touch()
    (folder / "link").symlink_to("mine/below")
    assert trusted.exposed(folder / path) is None


EXPOSED = safe_load(Path(__file__).with_name("tables.yaml").read_text())["exposed"]


@pytest.mark.parametrize(("path", "where"), EXPOSED.items())
def test_the_path_that_another_user_can_change_is_named(
    folder: Path, users: Path, path: str, where: str
) -> None:
    for name, mode in {"all": 0o777, "group": 0o775, "tmp": 0o1777, "mine": 0o755}.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "link").symlink_to(users)
    as_user('mkdir "$1/theirs" && ln -s / "$1/to-root"', folder / "tmp")
    for name in ("theirs", "for-all"):
        (folder / "mine" / name).touch()
    os.chown(folder / "mine/theirs", UID, UID)
    (folder / "mine/for-all").chmod(0o666)
    result = trusted.exposed(folder / path)
    assert result is not None
    assert result.path == str(folder / where)
    assert result.why


def test_a_directory_that_root_made_in_tmp_is_trusted(folder: Path) -> None:
    folder.chmod(0o1777)
    (folder / "mine").mkdir()
    assert files.write(folder / "mine/state/file", "text", 0o600)
    assert trusted.exposed(folder / "mine/state/file") is None


def test_a_directory_is_given_to_root_without_other_writers(users: Path) -> None:
    users.chmod(0o2777)
    trusted.take_over(users)
    assert (users.stat().st_uid, stat.S_IMODE(users.stat().st_mode)) == (0, 0o755)
    trusted.take_over(users / "a/b", 0o700)
    assert (users / "a/b").stat().st_mode & 0o777 == 0o700
