"""Addresses of notices: allowed in settings, allowed from secret sources, and invalid."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.notices import MOST, address, addresses, as_json
from sparkwright.config.parse import parse_settings
from sparkwright.findings.user_error import UserError
from tests.tables import Tables

cases = Tables(__file__)


def _of(**data: Any) -> list[tuple[str, str]]:
    return [(item.shown, item.url.value) for item in addresses([("spark-1", data)])]


def _refused(**data: Any) -> str:
    with pytest.raises(UserError) as error:
        addresses([("spark-1", data)])
    return str(error.value)


def test_a_written_address_becomes_a_url_and_a_text_without_secrets() -> None:
    for written, shown, url in cases.data["addresses"]:
        assert _of(notify=[written]) == [(shown, url)]


def test_a_file_and_a_command_give_addresses(tmp_path: Path) -> None:
    file = tmp_path / "addresses"
    file.write_text("# mine\n\nntfy:https://me:p@ss@ntfy.lab/fleet\ntgram://1234:abc/5678\n")
    file.chmod(0o600)
    arguments = [sys.executable, "-c", "print('webhook:https://h.example/x?key=1')"]
    assert [shown for shown, _ in _of(notify_file=str(file), notify_command=arguments)] == [
        "ntfy at ntfy.lab", "tgram, address 4", "webhook at h.example",
    ]  # fmt: skip


def test_hosts_with_the_same_addresses_are_notified_once() -> None:
    data = {"notify": ["ntfy:lab"], "services": "not judged here"}
    assert len(addresses([("a", data), ("b", data), ("c", {})])) == 1
    assert addresses([("a", {})]) == ()


@cases("text")
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        address(text, "it")
    assert "input" in _refused(notify=[text])
    assert not text or text not in str(error.value) or text in ("ntfy", "ntfy:", "webhook:",
                                                                "mailto:")  # fmt: skip


@cases("data", more=[{"notify": [f"ntfy:t{number}" for number in range(MOST + 1)]}])
def test_wrong_settings_are_reported(data: dict[str, Any]) -> None:
    assert "notify" in _refused(**data)


def test_a_file_that_other_users_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "addresses"
    file.write_text("ntfy:lab")
    file.chmod(0o644)
    assert "chmod 600" in _refused(notify_file=str(file))


def test_a_directory_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert "write one address per line" in _refused(notify_file=str(tmp_path))


def test_settings_hold_addresses_beside_other_keys() -> None:
    data = {"services": {}, "notify": ["ntfy:lab"], "notify_file": "x"}
    assert parse_settings("h", data, str).notify == ("ntfy:lab",)
    with pytest.raises(UserError, match="ntfy:, mailto: or webhook:"):
        parse_settings("h", {**data, "notify": ["pager:x"]}, str)


def test_a_webhook_keeps_its_query() -> None:
    assert as_json("https://u:p@h.example:8443/a/b?x=1&y=a%26b") == (
        "jsons://u:p@h.example:8443/a/b?-x=1&-y=a%26b"
    )
