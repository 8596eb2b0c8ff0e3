"""Signing keys of apt repositories: read, checked by fingerprint, and written as apt reads them.

Only as much of OpenPGP (RFC 4880) as that needs: lengths of packets, fingerprints of version 4.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from sparkwright.bootstrap.package_sources import Repository
from sparkwright.findings.user_error import Messages

_MESSAGES = Messages(__file__)
_ARMOUR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n]+\r?\n)*?\r?\n(.*?)"
    rb"(?:\r?\n=[A-Za-z0-9+/]{4})?\r?\n-----END PGP PUBLIC KEY BLOCK-----",
    re.DOTALL,
)
_PUBLIC_KEY = 6
#: Bytes; the largest of vendors' has 30 KB.
_MOST = 1 << 20
_SECONDS = 30


def key_text(repository: Repository) -> str:
    """The repository's key, armoured. Fetched or read now, and checked.

    Raises:
        UserError: it can't be had, is no key, or is another one than the fingerprint says.
    """
    where = f"bootstrap_sources: {repository.name}.key"
    data = _fetched(repository.key, where)
    try:
        result = list(fingerprints(binary(data)))
    except ValueError as error:
        raise _MESSAGES.refusal("no-key", where, file=repository.key, reason=error) from None
    wanted = (repository.fingerprint or "").upper()
    # One key, not one of several: apt would take packages that any of them has signed.
    if wanted and result != [wanted]:
        facts = {"file": repository.key, "name": repository.name, "wanted": wanted}
        keys = ", ".join(result) or "of nobody"
        raise _MESSAGES.refusal("another-key", where, keys=keys, **facts)
    return armoured(binary(data))


def binary(data: bytes) -> bytes:
    """A key's packets, from either form. Raises ValueError."""
    if b"-----BEGIN PGP" not in data:
        return data
    blocks = _ARMOUR.findall(data)
    if not blocks:
        raise ValueError("its armour does not end")
    try:
        return b"".join(
            base64.b64decode(b"".join(block.split()), validate=True) for block in blocks
        )
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def armoured(packets: bytes) -> str:
    """Text that apt reads from a file ``.asc``; gpg wants the sum at its end."""
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
            result <<= 1
            if result & 0x1000000:
                result ^= 0x1864CFB
    return result


def fingerprints(packets: bytes) -> Iterator[str]:
    """Of every public key in it, subkeys not counted, in hex. Raises ValueError."""
    if not packets:
        raise ValueError("it is empty")
    for tag, body in _packets(packets):
        if tag == _PUBLIC_KEY:
            if body[:1] != b"\x04":
                raise ValueError("its version is not 4")
            head = b"\x99" + len(body).to_bytes(2, "big")
            yield hashlib.sha1(head + body, usedforsecurity=False).hexdigest().upper()


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        first = data[at]
        if not first & 0x80:
            raise ValueError("it holds something else")
        if first & 0x40:
            tag, (length, size) = first & 0x3F, _new_length(data, at + 1)
        else:
            tag, size = first >> 2 & 0x0F, 1 << (first & 3)
            length = int.from_bytes(data[at + 1 : at + 1 + size], "big")
        begin = at + 1 + size
        at = begin + length
        if at > len(data):
            raise ValueError("it is cut off")
        yield tag, data[begin:at]


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    """A length and how many bytes it takes."""
    item = data[at] if at < len(data) else 255
    if item < 192:
        return item, 1
    if item < 224:
        return ((item - 192) << 8) + int.from_bytes(data[at + 1 : at + 2], "big") + 192, 2
    if item == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), 5
    raise ValueError("it has packets in parts")


def _fetched(path: str, where: str) -> bytes:
    if not path.startswith("https://"):
        try:
            return Path(path).expanduser().read_bytes()[:_MOST]
        except OSError as error:
            facts = {"file": path, "reason": error.strerror}
            raise _MESSAGES.refusal("unreadable-key", where, **facts) from None
    import requests  # only a host that lacks the repository asks for it, and it takes 50 ms

    try:
        with requests.get(path, timeout=_SECONDS, stream=True) as answer:
            answer.raise_for_status()
            if not answer.url.startswith("https://"):
                raise requests.RequestException(f"it leads to {answer.url}")
            return bytes(answer.raw.read(_MOST, decode_content=True))
    except requests.RequestException as error:
        raise _MESSAGES.refusal("unfetched-key", where, file=path, reason=error) from None
