"""Bootstrap takes packages from nobody but whom the user named, and gives root to nobody else."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.bootstrap import openpgp
from sparkwright.bootstrap.package_sources import Repository
from sparkwright.bootstrap.steps import sudoers_file
from sparkwright.config.parse import parse_settings
from sparkwright.findings.user_error import UserError
from tests.tables import Tables
from tests.unit.bootstrap.states import ALL, BOOKWORM, GB10, TRIXIE, UBUNTU, but, decided
from tests.unit.builders import RTX, origin

cases = Tables(__file__)

KEY = Path(__file__).parents[1] / "bootstrap/key.asc"
FINGERPRINT = KEY.with_suffix(".fingerprint").read_text().strip()


def test_a_key_of_somebody_else_is_not_put_on_a_host() -> None:
    """As a mirror that was taken over would serve it."""
    other = f"{FINGERPRINT[:-1]}{'0' if FINGERPRINT[-1] != '0' else '1'}"
    with pytest.raises(UserError) as result:
        openpgp.key_text(Repository("docker", "https://d", ("/",), (), str(KEY), other))
    assert f"is the key {FINGERPRINT}, not {other}" in str(result.value)


def test_a_key_that_brings_another_one_along_is_not_either(tmp_path: Path) -> None:
    """apt would take what any of them has signed."""
    packets = openpgp.binary(KEY.read_bytes())
    body = b"\x04" + bytes(40)
    mixed = packets + b"\x99" + len(body).to_bytes(2, "big") + body
    path = tmp_path / "keys"
    path.write_text(KEY.read_text() + openpgp.armoured(mixed[len(packets) :]))
    with pytest.raises(UserError, match="is the key"):
        openpgp.key_text(Repository("docker", "https://d", ("/",), (), str(path), FINGERPRINT))


def test_every_key_that_is_fetched_is_pinned() -> None:
    for state in (UBUNTU, GB10, TRIXIE, BOOKWORM):
        bare = but(state, driver=None if state is not GB10 else state.driver)
        for step in decided(bare, *ALL).steps:
            if step.repository is not None:
                assert step.repository.uri.startswith("https://")
                assert step.repository.key.startswith("https://")
                assert len(step.repository.fingerprint or "") == 40
                assert "rusted" not in step.repository.text


@cases("source", "message")
def test_a_source_that_proves_nothing_is_a_mistake(source: dict[str, Any], message: str) -> None:
    data = {"services": RTX, "bootstrap": ["docker"], "bootstrap_sources": {"docker": source}}
    with pytest.raises(UserError) as result:
        parse_settings("rtx-1", data, origin)
    assert message in str(result.value)
    assert "bootstrap_sources" in str(result.value)


@pytest.mark.parametrize("steps", [["docker", "dokcer"], "docker", ["root"]])
def test_steps_that_there_are_not(steps: Any) -> None:
    with pytest.raises(UserError, match="bootstrap"):
        parse_settings("rtx-1", {"services": RTX, "bootstrap": steps}, origin)


@cases("user", "file", "text")
def test_sudoers_names_that_user_and_no_other(
    user: str, file: str | None, text: str | None
) -> None:
    position, line = sudoers_file(user)
    name = position.removeprefix("/etc/sudoers.d/")
    assert "/" not in name
    assert "." not in name
    assert line.endswith(" ALL=(ALL) NOPASSWD: ALL\n")
    # Every character that sudoers gives a meaning has a backslash before it.
    assert file is None or (name, line.split(" ALL", 1)[0] + " ") == (file, text)
    written = line.removesuffix(" ALL=(ALL) NOPASSWD: ALL\n")
    assert written.replace("\\", "") == user.replace("\\", "")
    for at, item in enumerate(written):
        if not (item.isalnum() or item in "-_.\\"):
            assert written[at - 1] == "\\"


def test_a_password_is_never_needed_by_what_would_show_it() -> None:
    """pyinfra's own operations put it into a command line: no step before sudo asks for none."""
    for step in ALL[1:]:
        assert decided(but(UBUNTU, passwordless=False), step).steps == ()
