"""Run a program on a host and get its typed answer, in one remote execution."""

import os
import socket
from enum import Enum
from types import ModuleType
from typing import Any, TypeVar

from gevent import Timeout
from paramiko import SSHException
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from sparkwright.facts import hooks, programs
from sparkwright.facts.answers import HostError as HostError
from sparkwright.facts.answers import parse
from sparkwright.host.lib.records import encode

_Answer = TypeVar("_Answer")
#: Seconds beyond a program's own time, for both transfers.
_GRACE = 30


class Sudo(Enum):
    """Need of root: a program must become root, or may report as the deploy user if sudo fails."""

    NEEDED = "needed"
    IF_POSSIBLE = "if possible"


def ask(
    host: Host,
    program: ModuleType,
    request: object,
    answer: type[_Answer],
    *,
    sudo: Sudo = Sudo.NEEDED,
    timeout: float = 120,
    secrets: bool = True,
) -> _Answer:
    """Run a program on a host and return its answer.

    Args:
        secrets: whether the request may contain a secret. Otherwise the request is part of the
            command, which saves a round trip but is visible to other users of the host.
        answer: type of the program's answer, which is validated against this type.
        timeout: seconds until the host counts as lost.

    Raises:
        HostError: the host gives no valid answer; the message has the reason, in one line.
    """
    stdin = programs.payload(program, encode(request)) if secrets else None
    text = programs.BY_STANDARD_INPUT if secrets else programs.argument(program, encode(request))
    name = label(program)
    return parse(name, execute(host, name, _python(text, name), sudo, timeout, stdin), answer)


def label(program: ModuleType) -> str:
    """The name of a program in a host's process list and in messages."""
    return f"sparkwright-{program.__name__.rpartition('.')[2].replace('_', '-')}"


def command(program: ModuleType, request: object) -> StringCommand:
    """Return the command that runs a program with its request, which must not contain a secret."""
    return _python(programs.argument(program, encode(request)), label(program))


def root_if_possible(command: StringCommand) -> StringCommand:
    """Run a command as root, or, if sudo needs a password, as the user who logs in.

    The command is sent once: an observation has 28 KB, and a second copy costs a round trip.
    """
    return StringCommand("set --", command, '; sudo -n "$@" || "$@"')


def _python(text: str, name: str) -> StringCommand:
    return StringCommand("python3", "-IS", "-c", QuoteString(text), name)


def is_root(host: Host) -> bool:
    """Return whether the user logs in as root, possibly without sudo, as on minimal Debian."""
    if host.name == "@local":
        return os.geteuid() == 0
    transport = hooks.transport_of(host)
    return transport is not None and transport.get_username() == "root"


def execute(
    host: Host,
    label: str,
    command: StringCommand,
    sudo: Sudo,
    timeout: float,
    stdin: str | None = None,
) -> list[str]:
    """Run a command on a host, and return the lines of its standard output.

    Args:
        stdin: the command's input, which no process list shows.

    Raises:
        HostError: the command fails; the message has the reason, in one line.
    """
    password: str | None = host.state.config.SUDO_PASSWORD or host.data.get("_sudo_password")
    arguments: dict[str, Any] = {"_timeout": timeout}
    if is_root(host):
        pass
    elif password:
        # pyinfra would put the password into the command, where every user of the host can read it.
        # sudo reads the password from the first line of standard input. If sudo needs no password,
        # the program skips this line (``programs.BY_STANDARD_INPUT``).
        command = StringCommand("sudo", "-S", "-k", "-H", "-p", QuoteString(""), "--", command)
        stdin = f"{password}\n{stdin or ''}"
    elif sudo is Sudo.NEEDED:
        arguments["_sudo"] = True
    else:
        command = root_if_possible(command)
    if stdin is not None:
        arguments["_stdin"] = stdin
    hooks.guard_connections()
    try:
        with Timeout(timeout + _GRACE, TimeoutError):  # pyinfra may wait for the exit code forever
            ok, output = host.run_shell_command(command, **arguments)
    except TimeoutError:
        raise HostError(f"{label}: no answer within {timeout:.0f} s") from None
    except (OSError, EOFError, SSHException, PyinfraError) as error:
        raise HostError(
            f"{label}: the connection is lost ({str(error) or type(error).__name__})"
        ) from None
    if not ok:
        lines = [line for line in output.stderr_lines if line.strip()]
        raise HostError(f"{label}: {lines[-1] if lines else 'failed without output'}")
    return list(output.stdout_lines)


def addresses(host: Host) -> tuple[str, str] | None:
    """The controller's and the host's addresses of this connection; None through a jump host."""
    transport = hooks.transport_of(host)
    if transport is None or not isinstance(transport.sock, socket.socket):
        return None
    return transport.sock.getsockname()[0], transport.sock.getpeername()[0]
