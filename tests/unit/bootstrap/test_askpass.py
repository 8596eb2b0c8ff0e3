"""Prompts of ssh are answered wherever this user can run a program."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from sparkwright.bootstrap import askpass
from sparkwright.findings.user_error import UserError

ASK = ("sh", "-c", 'exec "$SSH_ASKPASS" "password:"')
FOLDERS = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")


@pytest.fixture
def noexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Variables whose folders are mounted noexec."""
    names: set[str] = set()
    access = os.access
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(tempfile, "tempdir", None)

    def allowed(path: str, mode: int) -> bool:
        return access(path, mode) and Path(path).relative_to(tmp_path).parts[0] not in names

    monkeypatch.setattr(os, "access", allowed)
    return names


@pytest.mark.parametrize("refused", range(3))
def test_the_program_lies_in_a_folder_without_noexec(
    refused: int, noexec: set[str], tmp_path: Path
) -> None:
    noexec |= set(FOLDERS[:refused])
    programs: list[Path] = []

    def answer(_: str) -> str:
        programs.extend(tmp_path.rglob("ask"))
        return "secret"

    assert askpass.run(ASK, answer)[:2] == (0, "secret\n")
    (program,) = programs
    assert program.relative_to(tmp_path).parts[0] == FOLDERS[refused]
    assert not list(tmp_path.rglob("sparkwright-*"))
    if refused == 2:
        assert stat.S_IMODE((tmp_path / "XDG_CACHE_HOME/sparkwright").stat().st_mode) == 0o700


def test_a_machine_with_noexec_folders_alone_gets_a_message(noexec: set[str]) -> None:
    noexec |= set(FOLDERS)
    with pytest.raises(UserError, match="noexec"):
        askpass.run(ASK, lambda _: "secret")
