"""SSH connections: low latency, detection of dead hosts, and a count of executions.

An unusable key fails only the hosts that use the key.
"""

import os
import socket
import sys
from typing import Any

from paramiko import Transport
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

from sparkwright.config import ssh_keys
from sparkwright.facts import hooks
from sparkwright.facts.memory import memory

#: Benchmarks use pyinfra's own connections for comparison.
_STOCK = bool(os.environ.get("SPARKWRIGHT_STOCK_CONNECTION"))
#: Seconds of silence from a host after which its connection counts as lost.
DEAD_AFTER = 30


class KeyUnusable(ConnectError):
    """A private key can't be used for the login; the message ends with the remedy."""


def private_key(load: Any, state: Any, key_filename: str, key_password: str | None) -> Any:
    """Load the private key of a host with pyinfra's own ``load``.

    Raises:
        KeyUnusable: the key can't be used; the message has the cause and the remedy.
    """
    if key_filename in state.private_keys:
        return state.private_keys[key_filename]
    if result := ssh_keys.fault(key_filename):
        raise KeyUnusable(f"ssh_key: {result[0]} ({result[1]})")
    encrypted = ssh_keys.is_encrypted(key_filename)
    # At a terminal, pyinfra prompts for the passphrase.
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if encrypted and not key_password and not asked:
        raise KeyUnusable(
            f"ssh_key: {key_filename!r} has a passphrase, but ssh_key_password is not set "
            f"(ssh-add {key_filename} and remove ssh_key, or set ssh_key_password)"
        )
    try:
        return load(state, key_filename=key_filename, key_password=key_password)
    except Exception as error:  # a damaged file may raise any exception
        if encrypted:
            why, remedy = "the key's passphrase is wrong", "correct ssh_key_password"
        else:
            why = str(error) if isinstance(error, PyinfraError) else type(error).__name__
            remedy = f"ssh-keygen -y -f {key_filename} shows whether the key is intact"
        raise KeyUnusable(f"ssh_key: {key_filename!r} can't be used: {why} ({remedy})") from None


class Connections(BaseStateCallback):
    """Callbacks that tune each new connection and report unreachable hosts."""

    def host_before_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Prepare a host before its connection."""
        hooks.only_connect_errors(host)
        if not _STOCK:
            hooks.with_transport(host, _tuned)

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Tune a host's connection before its first command."""
        transport = hooks.transport_of(host)
        if not _STOCK and transport is not None and isinstance(transport.sock, socket.socket):
            tune(transport.sock)
            transport.set_keepalive(DEAD_AFTER // 3)
            hooks.keep_a_channel_open(transport)
        host_memory = memory(host)

        def count() -> None:
            host_memory.executions += 1

        hooks.count_executions(host, count)

    def host_connect_error(self, state: State, host: Host, error: Exception) -> None:  # type: ignore[override]
        """Report an unreachable host or a refused login."""
        check = f" (check that the host is on, try 'ssh {host.name}', check ssh_ settings)"
        memory(host).failure = f"not reached: {error}" + check * (
            not isinstance(error, KeyUnusable)
        )


def _tuned(connection: object, **arguments: Any) -> Transport:
    """Tune a connection and return its transport; a jump host's connection is not a socket."""
    if isinstance(connection, socket.socket):
        tune(connection)
    return Transport(connection, **arguments)  # type: ignore[arg-type]


def tune(connection: socket.socket) -> None:
    """Make a connection send small packets at once, and fail when its host is dead.

    paramiko leaves Nagle's algorithm on: with delayed acknowledgements, every execution then waits
    about 40 ms.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", DEAD_AFTER // 3),
        ("TCP_KEEPINTVL", DEAD_AFTER // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", DEAD_AFTER * 1000),
    ):
        if hasattr(socket, option):  # some systems lack some options
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
