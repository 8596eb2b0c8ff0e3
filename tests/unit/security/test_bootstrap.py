"""Bootstrap takes packages only from named sources, and gives root only to the named user."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
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


def test_a_foreign_key_is_not_installed() -> None:
    """A hijacked mirror would serve a foreign key."""
    other = f"{FINGERPRINT[:-1]}{'0' if FINGERPRINT[-1] != '0' else '1'}"
    with pytest.raises(UserError) as result:
        openpgp.key_text(Repository("docker", "https://d", ("/",), (), str(KEY), other))
    assert f"holds the key {FINGERPRINT}, not {other}" in str(result.value)


@pytest.fixture(scope="module")
def export() -> Iterator[Callable[..., bytes]]:
    """Function that runs gpg with the secret keys of a vendor and of an attacker."""
    if shutil.which("gpg") is None:
        pytest.skip("makes keys with gpg")
    with tempfile.TemporaryDirectory() as home:  # the agent's socket needs a short path

        def gpg(*arguments: str) -> bytes:
            command = ("gpg", "--homedir", home, "--batch", "--passphrase=", *arguments)
            return subprocess.run(command, check=True, capture_output=True).stdout

        for name in ("vendor", "attacker"):
            gpg("--quick-generate-key", name, "rsa2048", "cert,sign", "never")
            fingerprint = next(iter(openpgp.fingerprints(gpg("--export", name))))
            gpg("--quick-add-key", fingerprint, "rsa2048", "sign", "never")
        yield gpg
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)


def packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def with_others(export: Callable[..., bytes]) -> Iterator[tuple[str, bytes]]:
    """A vendor's key together with keys that apt would trust as well, or packets that may hide
    keys.
    """
    vendor, attacker = export("--export", "vendor"), export("--export", "attacker")
    subkey = attacker.index(b"\xb9\x01\x0d")
    body = attacker[3:272]
    yield "secret key", vendor + export("--export-secret-keys", "attacker")
    yield "secret key alone", vendor + packet(5, body)
    for tag in (0, 1, 7, 8, 10, 11, 12, 18, 20, 60, 63):
        yield f"tag {tag}", vendor + packet(tag, b"\0" + attacker)
    yield "no length", vendor + b"\x9b" + body
    yield "no length, compressed", vendor + b"\xa3\0" + attacker
    yield "length in parts", vendor + b"\xc6\xe8" + body[:256] + b"\x0d" + body[256:]
    yield "70 KB", vendor + packet(6, b"\x04" + bytes(70_000))
    yield "70 KB of a signature", vendor + packet(2, bytes(70_000))
    yield "2 MiB", vendor + packet(13, b"vendor") * (2 << 17)
    yield "another key", vendor + attacker
    yield "another key first", attacker + vendor
    yield "twice", vendor + vendor
    yield "signature first", packet(2, b"\x04") + vendor
    yield "subkey of another key", vendor + attacker[subkey:]
    yield "subkey without a signature", vendor + packet(14, body)
    armoured = openpgp.armoured(vendor).encode(), openpgp.armoured(attacker).encode()
    yield "two blocks", b"".join(armoured)
    yield "two blocks in one line", armoured[0].rstrip() + armoured[1]
    yield "block in a block", armoured[0][:200] + armoured[1] + armoured[0][200:]
    yield "secret block", armoured[0] + export("--armor", "--export-secret-keys", "attacker")


def accepts(data: bytes, fingerprint: str, path: Path) -> bool:
    path.write_bytes(data)
    try:
        text = openpgp.key_text(
            Repository("docker", "https://d", ("/",), (), str(path), fingerprint)
        )
    except UserError:
        return False
    assert openpgp.binary(text.encode()) == openpgp.binary(data)
    return True


@pytest.mark.parametrize("judge", ["gpg", "reader"])
def test_a_file_with_a_second_key_is_not_installed(
    judge: str, export: Callable[..., bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt would trust signatures of any key in the file, since gpgv and sqv read all keys."""
    files = dict(with_others(export))
    vendor, attacker = export("--export", "vendor"), export("--export", "attacker")
    if judge == "gpg":
        # The signature names the vendor's key, but comes from another subkey. apt verifies it as
        # well.
        forged = attacker[attacker.index(b"\xb9\x01\x0d") :][:272]
        files["forged"] = vendor + forged + vendor[vendor.index(b"\xb9\x01\x0d") + 272 :]
    else:
        monkeypatch.setenv("PATH", "/nonexistent")
    fingerprint = hashlib.sha1(vendor[:272]).hexdigest().upper()
    assert accepts(vendor, fingerprint, tmp_path / "key")
    accepted = [n for n, data in files.items() if accepts(data, fingerprint, tmp_path / "key")]
    assert accepted == []


def test_a_newly_exported_vendor_key_passes(
    export: Callable[..., bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = next(iter(openpgp.fingerprints(export("--export", "vendor"))))
    export("--quick-add-uid", fingerprint, "vendor, renamed")
    export("--quick-set-expire", fingerprint, "5y")
    export("--quick-add-key", fingerprint, "ed25519", "sign", "5y")
    files = [
        export("--export", fingerprint), export("--armor", "--export", fingerprint),
        export("--export-options", "export-minimal", "--export", fingerprint),
    ]  # fmt: skip
    for path in (os.environ["PATH"], "/nonexistent"):
        monkeypatch.setenv("PATH", path)
        assert all(accepts(data, fingerprint, tmp_path / "key") for data in files)


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
def test_an_unverifiable_source_is_refused(source: dict[str, Any], message: str) -> None:
    data = {"services": RTX, "bootstrap": ["docker"], "bootstrap_sources": {"docker": source}}
    with pytest.raises(UserError) as result:
        parse_settings("rtx-1", data, origin)
    assert message in str(result.value)
    assert "bootstrap_sources" in str(result.value)


@pytest.mark.parametrize("steps", [["docker", "dokcer"], "docker", ["root"]])
def test_unknown_bootstrap_steps_are_refused(steps: Any) -> None:
    with pytest.raises(UserError, match="bootstrap"):
        parse_settings("rtx-1", {"services": RTX, "bootstrap": steps}, origin)


@cases("user", "file", "text")
def test_sudoers_names_only_the_login_user(user: str, file: str | None, text: str | None) -> None:
    position, line = sudoers_file(user)
    name = position.removeprefix("/etc/sudoers.d/")
    assert "/" not in name
    assert "." not in name
    assert line.endswith(" ALL=(ALL) NOPASSWD: ALL\n")
    # Every character with a meaning in sudoers has a backslash before it.
    assert file is None or (name, line.split(" ALL", 1)[0] + " ") == (file, text)
    written = line.removesuffix(" ALL=(ALL) NOPASSWD: ALL\n")
    assert written.replace("\\", "") == user.replace("\\", "")
    for at, item in enumerate(written):
        if not (item.isalnum() or item in "-_.\\"):
            assert written[at - 1] == "\\"


def test_only_the_sudo_step_needs_a_password() -> None:
    """pyinfra's operations put the password into a command line, so that only the step for
    passwordless sudo may need the password.
    """
    for step in ALL[1:]:
        assert decided(but(UBUNTU, passwordless=False), step).steps == ()
