"""Logging in: what of a private key or a connection is wrong fails that host alone."""

import sys
from typing import Any

from pyinfra.api.exceptions import ConnectError, PyinfraError

from sparkwright.config import ssh_keys


class KeyUnusable(ConnectError):
    """A private key that can't be logged in with; its text ends with what to do."""


def private_key(load: Any, state: Any, key_filename: str, key_password: str | None) -> Any:
    """The private key of a host, by pyinfra's own ``load``.

    Raises:
        KeyUnusable: saying why, and what to do.
    """
    if key_filename in state.private_keys:
        return state.private_keys[key_filename]
    if result := ssh_keys.fault(key_filename):
        raise KeyUnusable(f"ssh_key: {result[0]} ({result[1]})")
    encrypted = ssh_keys.is_encrypted(key_filename)
    # Who sits at a terminal is asked by pyinfra.
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if encrypted and not key_password and not asked:
        raise KeyUnusable(
            f"ssh_key: {key_filename!r} has a passphrase, and none is set (ssh-add {key_filename} "
            "and drop ssh_key, or set ssh_key_password)"
        )
    try:
        return load(state, key_filename=key_filename, key_password=key_password)
    except Exception as error:  # paramiko's parsers raise whatever a damaged file provokes
        if encrypted:
            why, remedy = "its passphrase is another one", "correct ssh_key_password"
        else:
            why = str(error) if isinstance(error, PyinfraError) else type(error).__name__
            remedy = f"ssh-keygen -y -f {key_filename} says whether it is whole"
        raise KeyUnusable(f"ssh_key: {key_filename!r} can't be used: {why} ({remedy})") from None
