"""A local user tries to say which service of a group runs."""

import json
import os
from pathlib import Path

import pytest

from sparkwright.host.lib import exclusive, files, trusted
from tests.host.security.conftest import UID, as_user

GROUPS = '{"groups": {"evening": {"members": ["chat", "coder"]}}}'
ACTIVE = '{"evening": {"service": "coder"}}'
WRITE = 'printf %s "$1" > "$2"'


def test_what_another_user_wrote_is_not_believed(users: Path) -> None:
    for name, text in (("exclusive.json", GROUPS), ("active.json", ACTIVE)):
        as_user(WRITE, text, users / name)
    assert exclusive.groups(users).groups == {}
    assert exclusive.active(users) == {}
    assert exclusive.sleeping(users) == {}


def test_a_file_of_theirs_in_roots_directory_is_not_believed(folder: Path) -> None:
    files.write(folder / "exclusive.json", GROUPS, 0o600)
    (folder / "active.json").write_text(ACTIVE)
    os.chown(folder / "active.json", UID, UID)
    assert exclusive.running(folder) == {"evening": "chat"}
    files.write(folder / "active.json", ACTIVE, 0o600)
    assert exclusive.running(folder) == {"evening": "coder"}


def test_it_is_not_written_where_a_user_decides(users: Path) -> None:
    with pytest.raises(trusted.Exposed):
        exclusive.activate(users, {"evening": "coder"}, "ann", "")
    with pytest.raises(trusted.Exposed):
        exclusive.mark(users, "sparkwright-chat.service", asleep=True)


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 100000, '{"groups": 5}', '{"groups": {"evening": {"members": []}}}',
             json.dumps({"groups": {"evening": {"members": ["a"], "windows": [[1, 2]]}}})],
)  # fmt: skip
def test_what_a_power_cut_tore_is_no_group(folder: Path, text: str) -> None:
    files.write(folder / "exclusive.json", text, 0o600)
    assert exclusive.running(folder) == {}
