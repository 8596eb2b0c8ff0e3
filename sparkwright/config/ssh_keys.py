"""A private key that ``ssh_key`` names, judged by its file before anybody logs in with it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkwright.findings.finding import Finding, Severity, Subject

#: Id of the finding.
SSH_KEY = "ssh-key"
_AGENT = "or drop ssh_key to use your SSH agent and ssh_config"
#: Bytes: no private key is longer.
_MOST = 1 << 16
_PUBLIC = re.compile(rb"\s*(ssh-|ecdsa-|sk-|---- BEGIN SSH2 PUBLIC|-----BEGIN [A-Z ]*PUBLIC KEY)")
_PRIVATE = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----\s(.*?)-----END", re.DOTALL)
_MAGIC = b"openssh-key-v1\0"


def fault(name: str) -> tuple[str, str] | None:
    """What is wrong with the file of a private key, and what to do; None where it is one.

    Args:
        name: as the user wrote it; ``~`` is expanded, as pyinfra does.
    """
    try:
        content = _content(name)
    except FileNotFoundError:
        return f"there is no file {name!r}", f"name an existing private key, {_AGENT}"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return f"{name!r} can't be read: {why}", f"it must be a file of yours: chmod 600, {_AGENT}"
    if _PUBLIC.match(content):
        private = name.removesuffix(".pub")
        return (
            f"{name!r} is a public key",
            f"name the private one ({private!r} if that is its path)",
        )
    if not _PRIVATE.search(content):
        what = f"{name!r} is not a private key of OpenSSH's"
        return what, f"name one (ssh-keygen makes it), {_AGENT}"
    return None


def unusable_key(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> Iterator[Finding]:
    """A private key that nobody can log in with. It fails its host alone, when that is reached."""
    key = data.get("ssh_key")
    if isinstance(key, str) and (found := fault(key)):
        yield Finding(
            SSH_KEY,
            Severity.ERROR,
            Subject(host, None, origin("ssh_key"), "ssh_key"),
            observed=found[0],
            remedy=found[1],
        )


def is_encrypted(name: str) -> bool:
    """Whether a private key has a passphrase."""
    found = _PRIVATE.search(_content(name))
    if found is None:
        return False
    kind, body = found.groups()
    if b"ENCRYPTED" in kind + body:
        return True
    try:
        start = base64.b64decode(b"".join(body.split()))
    except ValueError:
        return False
    if not start.startswith(_MAGIC):
        return False
    cipher = start[len(_MAGIC) :]
    length = int.from_bytes(cipher[:4], "big")
    return cipher[4 : 4 + length] != b"none"


def _content(name: str) -> bytes:
    with Path(name).expanduser().open("rb") as file:
        return file.read(_MOST)
