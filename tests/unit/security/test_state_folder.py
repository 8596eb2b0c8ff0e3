"""The site's state on the controller is its owner's alone, and nobody else's key is believed."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from sparkwright.config.secrets import api_key
from sparkwright.documents.text_files import make_folder, write
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import recipe_registry
from sparkwright.tls.authority import authority
from tests.unit.security.test_tls import NOW

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(".sparkwright")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
@pytest.mark.parametrize(
    "begin",
    [lambda: api_key(".sparkwright/api_key", {}), lambda: authority(NOW),
     lambda: write(Path(".sparkwright/bench/a.json"), "{}"),
     lambda: recipe_registry.snapshot("https://127.0.0.1:9/nothing")],
    ids=["key", "CA", "results", "registry"],
)  # fmt: skip
def test_the_state_folder_is_its_owner_s_whatever_the_umask(
    site: Path, umask: int, begin: object
) -> None:
    assert callable(begin)
    before = os.umask(umask)
    try:
        for _ in range(2):
            with suppress(UserError):  # the registry does not answer
                begin()
            assert mode(site) == 0o700
            site.chmod(0o775)
            (site / "api_key").unlink(missing_ok=True)
    finally:
        os.umask(before)


@needs_root
def test_a_state_folder_of_another_user_is_refused(site: Path, tmp_path: Path) -> None:
    site.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(UserError, match=r"belongs to another user\n.*chown"):
            make_folder(site / "keys")
    finally:
        os.seteuid(0)


@needs_root
def test_a_key_of_another_user_is_refused(site: Path, tmp_path: Path) -> None:
    """Who owns it knows it, and may change it. The site's owner decides what is run anyway."""
    api_key(".sparkwright/api_key", {})
    authority(NOW)
    os.chown(site / "api_key", NOBODY, -1)
    os.chown(site / "ca/ca.pem", NOBODY, -1)
    with pytest.raises(UserError, match=r"the API key is another user's \(uid 65534\)\n.*chown"):
        api_key(".sparkwright/api_key", {})
    with pytest.raises(UserError, match="this private key is another user's"):
        authority(NOW)
    os.chown(tmp_path, NOBODY, -1)
    assert api_key(".sparkwright/api_key", {})
    assert authority(NOW)
