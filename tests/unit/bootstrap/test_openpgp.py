"""Signing keys: gpg's fingerprints, and apt's reading."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sparkwright.bootstrap import openpgp
from sparkwright.bootstrap.package_sources import Repository
from sparkwright.findings.user_error import UserError

#: A key that gpg made for this test; its secret half was thrown away.
KEY = Path(__file__).parent / "key.asc"
FINGERPRINT = (Path(__file__).parent / "key.fingerprint").read_text().strip()


def repository(key: Path | str, fingerprint: str | None = None) -> Repository:
    return Repository("docker", "http://depot", ("/",), (), str(key), fingerprint)


def test_a_key_has_its_fingerprint_in_both_forms(tmp_path: Path) -> None:
    packets = openpgp.binary(KEY.read_bytes())
    assert openpgp.fingerprints(packets) == [FINGERPRINT]
    text = openpgp.armoured(packets)
    assert openpgp.binary(text.encode()) == packets
    binary = tmp_path / "key.gpg"
    binary.write_bytes(packets)
    for position in (KEY, binary):
        for wanted in (FINGERPRINT, FINGERPRINT.lower(), None):
            assert openpgp.key_text(repository(position, wanted)) == text


@pytest.mark.skipif(shutil.which("gpg") is None, reason="compares with gpg")
def test_fingerprints_equal_the_output_of_gpg(tmp_path: Path) -> None:
    path = tmp_path / "key.asc"
    path.write_text(openpgp.key_text(repository(KEY)))
    arguments = ["gpg", "--with-colons", "--show-keys", str(path)]
    home = {**os.environ, "GNUPGHOME": str(tmp_path)}
    output = subprocess.run(arguments, capture_output=True, text=True, check=True, env=home).stdout
    result = [line.split(":")[9] for line in output.splitlines() if line.startswith("fpr")]
    assert result[0] == FINGERPRINT


@pytest.mark.parametrize(
    "data",
    [b"", b"<html>not found</html>", b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA",
     b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n%%%%\n-----END PGP PUBLIC KEY BLOCK-----\n",
     b"\x99\xff\xff\x04", b"\xc6\xff\xff", b"\xc6\xe1\x04", b"\xc6\x01\x03"],
)  # fmt: skip
def test_a_text_without_a_key_is_reported_without_a_traceback(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    with pytest.raises(UserError, match="not an OpenPGP public key"):
        openpgp.key_text(repository(path))


def test_a_missing_key_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read: No such file"):
        openpgp.key_text(repository(tmp_path / "key"))


def test_packet_lengths_of_the_new_format_are_read() -> None:
    packets = openpgp.binary(KEY.read_bytes())
    length, body = int.from_bytes(packets[1:3], "big"), packets[3:]
    two = bytes([0xC6, 192 + ((length - 192) >> 8), (length - 192) & 0xFF]) + body
    five = b"\xc6\xff" + length.to_bytes(4, "big") + body
    for item in (two, five):
        assert openpgp.fingerprints(item) == [FINGERPRINT]
