"""Check of the private key's file in ``ssh_key``, before any login."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake

#: Id of the finding.
SSH_KEY = "ssh-key"
_AGENT = "or drop ssh_key to use your SSH agent and ssh_config"
#: Largest size of a private key in bytes.
_MOST = 1 << 16
_PUBLIC = re.compile(rb"\s*(ssh-|ecdsa-|sk-|---- BEGIN SSH2 PUBLIC|-----BEGIN [A-Z ]*PUBLIC KEY)")
_PRIVATE = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----\s(.*?)-----END", re.DOTALL)


def fault(name: str) -> tuple[str, str] | None:
    """Return the fault in the file of a private key and the remedy; None for a valid key.

    Args:
        name: path as the user wrote it; ``~`` is expanded, as in pyinfra.
    """
    try:
        content = _content(name)
    except FileNotFoundError:
        return f"there is no file {name!r}", f"name an existing private key, {_AGENT}"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return f"{name!r} can't be read: {why}", f"the file must belong to you: chmod 600, {_AGENT}"
    if _PUBLIC.match(content):
        private = name.removesuffix(".pub")
        remedy = f"name the private key (perhaps {private!r})"
        return f"{name!r} is a public key", remedy
    if not _PRIVATE.search(content):
        problem = f"{name!r} is not a private key of OpenSSH"
        return problem, f"name a private key (ssh-keygen makes one), {_AGENT}"
    return None


def unusable_key(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> Iterator[Finding]:
    """Report a private key that can't be used for a login.

    The finding does not stop a run: only the host with this key fails, at its connection.
    """
    key = data.get("ssh_key")
    if isinstance(key, str) and (result := fault(key)):
        yield replace(mistake(f"{origin('ssh_key')}: ssh_key", *result, host), id=SSH_KEY)


def is_encrypted(name: str) -> bool:
    """Return whether a private key has a passphrase."""
    from cryptography.exceptions import UnsupportedAlgorithm  # only a login needs this import
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_ssh_private_key,
    )

    content = _content(name)
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else load_pem_private_key
    try:
        load(content, None)
    except TypeError:
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return False


def _content(name: str) -> bytes:
    with Path(name).expanduser().open("rb") as file:
        return file.read(_MOST)
