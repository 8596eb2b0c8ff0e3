"""Accounts of registries from Docker's own file."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve.credentials import account
from tests.tables import Tables

cases = Tables(__file__)


def file(folder: Path, data: Any) -> str:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def entry(secret: str) -> dict[str, str]:
    return {"auth": base64.b64encode(secret.encode()).decode()}


def test_each_registry_gets_its_own_account_and_no_other(tmp_path: Path) -> None:
    accounts = {"ghcr.io": entry("me:one"), "https://index.docker.io/v1/": entry("me:two")}
    path = file(tmp_path, {"auths": accounts})
    assert account(path, "https://ghcr.io") == "me:one"
    assert account(path, "https://registry-1.docker.io") == "me:two"
    assert account(path, "https://quay.io") is None
    assert account(None, "https://ghcr.io") is None


@cases("data", "message")
def test_a_file_that_can_not_be_used_is_reported(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        account(file(tmp_path, data), "https://ghcr.io")


def test_a_missing_file_and_an_unencrypted_registry_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        account(str(tmp_path / "none"), "https://ghcr.io")
    path = file(tmp_path, {"auths": {"10.0.0.5:5000": entry("me:secret")}})
    with pytest.raises(UserError, match="unencrypted") as raised:
        account(path, "http://10.0.0.5:5000")
    assert "secret" not in str(raised.value)
