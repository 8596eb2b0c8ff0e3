"""Prompts of ssh are answered wherever this user can run a program."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.bootstrap import askpass
from sparkwright.findings.user_error import UserError

ASK = ("sh", "-c", 'exec "$SSH_ASKPASS" "password:"')
FOLDERS = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a subfolder for each variable, short enough for the address of a socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for name in FOLDERS:
            Path(folder, name).mkdir()
            monkeypatch.setenv(name, str(Path(folder, name)))
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)


@pytest.fixture
def noexec(short: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Variables whose folders are mounted noexec."""
    names: set[str] = set()
    access = os.access

    def allowed(path: str, mode: int) -> bool:
        return access(path, mode) and Path(path).relative_to(short).parts[0] not in names

    monkeypatch.setattr(os, "access", allowed)
    return names


@pytest.mark.parametrize("refused", range(3))
def test_the_program_lies_in_a_folder_without_noexec(
    refused: int, noexec: set[str], short: Path
) -> None:
    noexec |= set(FOLDERS[:refused])
    assert _folder_of_the_program(short) == FOLDERS[refused]
    assert not list(short.rglob("sparkwright-*"))
    if refused == 2:
        assert stat.S_IMODE((short / "XDG_CACHE_HOME/sparkwright").stat().st_mode) == 0o700


def test_a_folder_too_long_for_a_socket_is_skipped(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = short / "TMPDIR" / ("x" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    assert _folder_of_the_program(short) == "XDG_RUNTIME_DIR"


def _folder_of_the_program(root: Path) -> str:
    programs: list[Path] = []

    def answer(_: str, own: bool) -> str:
        assert not own  # after `exec`, the parent is this process
        programs.extend(root.rglob("ask"))
        return "secret"

    assert askpass.run(ASK, answer)[:2] == (0, "secret\n")
    (program,) = programs
    return program.relative_to(root).parts[0]


def test_a_machine_with_only_noexec_folders_gets_a_message(noexec: set[str]) -> None:
    noexec |= set(FOLDERS)
    with pytest.raises(UserError, match="noexec"):
        askpass.run(ASK, lambda *_: "secret")


def test_a_program_is_distinguished_from_its_parent() -> None:
    """The prompt comes from the ssh to a jump host, which may imitate the prompt of the host
    behind it.
    """
    asked: list[tuple[str, bool]] = []

    def answer(prompt: str, own: bool) -> str | None:
        asked.append((prompt, own))
        return "secret" if own else None

    ask = '"$SSH_ASKPASS" "password:"'
    assert askpass.run(("sh", "-c", f"{ask}; true"), answer)[1] == "secret\n"
    assert askpass.run(("sh", "-c", f"({ask}; true); true"), answer)[1] == ""
    assert asked == [("password:", True), ("password:", False)]
