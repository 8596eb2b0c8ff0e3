"""The API key: made once, readable only by its owner, never printed."""

import stat
from pathlib import Path

import pytest

from sparkwright.config.secrets import VARIABLE, Secret, api_key
from sparkwright.findings.user_error import UserError


def test_the_api_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    first = api_key(path, {})
    assert api_key(path, {}).value == first.value
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first.value) > 40


def test_a_key_that_other_users_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    api_key(path, {})
    path.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        api_key(path, {})


@pytest.mark.parametrize(
    "key", ["", "short", "has space in it and is long", "ends with newline\n" * 2]
)
def test_a_key_that_disables_the_check_or_changes_in_transit_is_refused(
    tmp_path: Path, key: str
) -> None:
    with pytest.raises(UserError, match="not a usable API key"):
        api_key(tmp_path / "key", {VARIABLE: key})


def test_a_secret_is_never_printed() -> None:
    assert "hidden" not in f"{Secret('hidden')} {Secret('hidden')!r} {[Secret('hidden')]}"
