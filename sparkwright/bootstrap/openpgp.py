"""Read signing keys of apt repositories, check the fingerprints, and write the keys in apt's
format.

This module reads only the part of OpenPGP (RFC 4880) that a public key needs: packets of five tags
with definite lengths, fingerprints of version 4. The programs that apt runs (gpgv, sqv) accept
further packets, and trust every key that they find in the file; therefore this module refuses a
file with other packets.
"""

import base64
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sparkwright.bootstrap.package_sources import Repository
from sparkwright.documents.bounds import Unusable
from sparkwright.documents.text_files import read_bytes
from sparkwright.findings.user_error import Messages, refusal
from sparkwright.resolve.queries import Server

_MESSAGES = Messages(__file__)
_ARMOUR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n]+\r?\n)*?\r?\n(.*?)"
    rb"(?:\r?\n=[A-Za-z0-9+/]{4})?\r?\n-----END PGP PUBLIC KEY BLOCK-----",
    re.DOTALL,
)
_SIGNATURE, _PUBLIC_KEY, _SUBKEY = 2, 6, 14
#: Accepted packets: the packets above, a user ID and a user attribute; not a secret key (5), which
#: apt's programs would accept as well.
_TAGS = (_SIGNATURE, _PUBLIC_KEY, 13, _SUBKEY, 17)
#: Largest size of a file and of a packet, in bytes. The largest file of a vendor has 30 KB; a
#: fingerprint's input has two bytes for the length of its key.
_MOST, _LARGEST = 1 << 20, 0xFFFF
_SECONDS = 30


def key_text(repository: Repository) -> str:
    """Fetch or read the repository's key, check it, and return it in ASCII armour.

    Raises:
        UserError: the key can't be fetched, is not a key, or has another fingerprint.
    """
    where = f"bootstrap_sources: {repository.name}.key"
    data = _fetched(repository.key, where)
    try:
        packets = binary(data)
        result = fingerprints(packets)
    except (ValueError, subprocess.TimeoutExpired) as error:
        raise _MESSAGES.refusal("no-key", where, file=repository.key, reason=error) from None
    wanted = (repository.fingerprint or "").upper()
    # Accept only one key: apt trusts packages that any key in the file has signed.
    if wanted and result != [wanted]:
        facts = {"file": repository.key, "name": repository.name, "wanted": wanted}
        raise _MESSAGES.refusal("another-key", where, keys=", ".join(result), **facts)
    return armoured(packets)


def binary(data: bytes) -> bytes:
    """Return the packets of a key in binary form or ASCII armour. Raises ValueError."""
    if b"-----BEGIN PGP" not in data:
        return data
    blocks = _ARMOUR.findall(data)
    if len(blocks) != 1 or data.count(b"-----BEGIN PGP") != 1:
        raise ValueError("it has no complete ASCII armour, or more than one block")
    return base64.b64decode(b"".join(blocks[0].split()), validate=True)


def armoured(packets: bytes) -> str:
    """Return the text of an ``.asc`` file for apt; gpg requires the checksum at the text's end."""
    text = base64.b64encode(packets).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----" for word in ("BEGIN", "END"))
    total = base64.b64encode(_crc24(packets).to_bytes(3, "big")).decode()
    return "\n".join([begin, "", *lines, f"={total}", end, ""])


def _crc24(data: bytes) -> int:
    result = 0xB704CE
    for byte in data:
        result ^= byte << 16
        for _ in range(8):
            result = result << 1 ^ (result >> 23) * 0x1864CFB
    return result


def fingerprints(packets: bytes) -> list[str]:
    """Fingerprints of every primary key in the text, in hex.

    Each subkey must belong to the primary key: gpg verifies the subkeys if this machine has gpg.
    Without gpg, a signature after the subkey must name the primary key, and apt verifies the
    signature.

    Raises:
        ValueError: the text is not a public key, or also contains other packets.
    """
    keys: list[str] = []
    subkeys: list[bool] = []
    for tag, body in _packets(packets):
        if tag == _PUBLIC_KEY and body[:1] == b"\x04":
            head = b"\x99" + len(body).to_bytes(2, "big")
            keys.append(hashlib.sha1(head + body, usedforsecurity=False).hexdigest().upper())
        elif tag == _PUBLIC_KEY or not keys:
            raise ValueError("it does not begin with a key of version 4")
        elif tag == _SUBKEY:
            subkeys.append(False)
        elif tag == _SIGNATURE and subkeys:
            # An issuer is the key's ID, or its fingerprint, which ends in the ID.
            subkeys[-1] |= body[:2] == b"\x04\x18" and bytes.fromhex(keys[-1])[-8:] in body
    gpg = shutil.which("gpg")
    if not (keys and all(subkeys)) or (gpg and not _lists(gpg, packets, keys, len(subkeys))):
        raise ValueError("it has no key, or a subkey of another key, or gpg finds other keys in it")
    return keys


def _lists(gpg: str, packets: bytes, keys: list[str], subkeys: int) -> bool:
    """Return whether gpg finds these primary keys, and this number of subkeys signed by them."""
    with tempfile.TemporaryDirectory() as home:
        listing = subprocess.run(
            [gpg, "--homedir", home, "--batch", "--no-autostart", "--with-colons", "--show-keys"],
            input=packets, capture_output=True, timeout=_SECONDS,
        ).stdout.decode(errors="replace")  # fmt: skip
    counts = [f"\n{listing}".count(f"\n{kind}:") for kind in ("pub", "sub")]
    return counts == [len(keys), subkeys] and all(f":{key}:\n" in listing for key in keys)


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        first = data[at]
        if not first & 0x80:
            raise ValueError("it holds data that is not an OpenPGP packet")
        if first & 0x40:
            tag, (length, size) = first & 0x3F, _new_length(data, at + 1)
        else:
            tag, size = first >> 2 & 0x0F, 1 << (first & 3)
            length = int.from_bytes(data[at + 1 : at + 1 + size], "big") if size < 8 else len(data)
        begin = at + 1 + size
        at = begin + length
        if tag not in _TAGS or length > _LARGEST or at > len(data):
            raise ValueError(f"it is cut off, or holds a packet of tag {tag} with {length} bytes")
        yield tag, data[begin:at]


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a packet's length, and the number of bytes that encode it."""
    item = data[at] if at < len(data) else 255
    if item < 192:
        return item, 1
    if item < 224:
        return ((item - 192) << 8) + int.from_bytes(data[at + 1 : at + 2], "big") + 192, 2
    if item == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), 5
    raise ValueError("it has packets with partial lengths")


def _fetched(path: str, where: str) -> bytes:
    if not path.startswith("https://"):
        try:
            return read_bytes(Path(path).expanduser(), _MOST)
        except Unusable as error:
            raise refusal(where, f"{path}: {error.fault}", error.remedy) from None
    try:
        return Server(path).get(path, most=_MOST).required().content
    except (OSError, ValueError, Unusable) as error:
        raise _MESSAGES.refusal("unfetched-key", where, file=path, reason=error) from None
