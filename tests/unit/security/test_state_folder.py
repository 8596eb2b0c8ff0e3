"""Only the owner can read the site's state on the controller; keys of other users are refused."""

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from jinja2.bccache import FileSystemBytecodeCache, bc_magic

from sparkwright.config import templates
from sparkwright.config.secrets import api_key
from sparkwright.documents import caches
from sparkwright.documents.text_files import make_folder, write
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import recipe_registry
from sparkwright.tls.authority import authority
from tests.unit.builders import ROOT
from tests.unit.security.test_certificates import NOW

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture(autouse=True)
def site(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "home"))
    return Path(".sparkwright")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
@pytest.mark.parametrize(
    "begin",
    [lambda: api_key(".sparkwright/api_key", {}), lambda: authority(NOW),
     lambda: write(Path(".sparkwright/bench/a.json"), "{}")],
    ids=["key", "CA", "results"],
)  # fmt: skip
def test_only_the_owner_can_open_the_state_folder_at_any_umask(
    site: Path, umask: int, begin: object
) -> None:
    assert callable(begin)
    before = os.umask(umask)
    try:
        for _ in range(2):
            with suppress(UserError):  # the command may fail: the registry does not answer
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
    """The file's owner knows the key and can change the file.

    The site's owner is an exception, since the owner chooses the code that runs.
    """
    api_key(".sparkwright/api_key", {})
    authority(NOW)
    os.chown(site / "api_key", NOBODY, -1)
    os.chown(site / "ca/ca.pem", NOBODY, -1)
    with pytest.raises(UserError, match=r"API key belongs to another user \(uid 65534\)\n.*chown"):
        api_key(".sparkwright/api_key", {})
    with pytest.raises(UserError, match="this private key belongs to another user"):
        authority(NOW)
    os.chown(tmp_path, NOBODY, -1)
    assert api_key(".sparkwright/api_key", {})
    assert authority(NOW)


@pytest.mark.parametrize(("place", "mode"), [("own", 0o700), ("own", 0o777), ("site", 0o700)])
def test_no_code_is_loaded_from_a_checkout_or_a_folder_that_other_users_may_write(
    site: Path, place: str, mode: int
) -> None:
    """Compiled templates are pickles: this pickle makes a directory."""
    own = caches.of_user("templates")
    folder = own if place == "own" else site / "cache/templates"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    templates._environment.cache_clear()
    source = ROOT / "templates/sandboxes/fetch.j2"
    key = FileSystemBytecodeCache().get_cache_key("sandboxes/fetch.j2", str(source))
    cached = folder / f"__jinja2_{key}.cache"
    cached.write_bytes(bc_magic + b"cos\nmkdir\n(S'attacked'\ntR.")
    assert templates.properties("fetch")
    assert Path("attacked").exists() is ((place, mode) == ("own", 0o700))
    templates._environment.cache_clear()


def test_no_git_repository_of_a_checkout_is_used(site: Path) -> None:
    """Settings of a repository contain commands; this command runs for a signed commit."""
    address = "https://127.0.0.1:9/registry"
    planted = site / "cache/registries" / hashlib.sha256(address.encode()).hexdigest()[:16]
    planted.mkdir(parents=True)

    def git(*arguments: str, text: str = "") -> str:
        command = ["git", "-C", str(planted), *arguments]
        return subprocess.run(
            command, input=text, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet", "--bare")
    (planted / "gpg").write_text(f"#!/bin/sh\ntouch {site.resolve()}/attacked\n")
    (planted / "gpg").chmod(0o755)
    git("config", "log.showSignature", "true")
    git("config", "gpg.program", str((planted / "gpg").resolve()))
    tree = git("hash-object", "-t", "tree", "-w", "--stdin").strip()
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n"
    who = "a <a@b> 1 +0000\n"
    text = f"tree {tree}\nauthor {who}committer {who}{signature}\nmessage\n"
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", text=text).strip()
    git("update-ref", f"refs/registry/{commit}", commit)
    with suppress(UserError):
        recipe_registry.snapshot(address, commit).date()
    assert not (site / "attacked").exists()
