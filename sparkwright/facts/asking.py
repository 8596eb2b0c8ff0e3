"""Asking a host: run one of our programs there and get its typed answer. One remote execution."""

from __future__ import annotations

import json
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from paramiko import SSHException
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from sparkwright.facts import programs
from sparkwright.host.contracts.records import Malformed, decode, encode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Answer = TypeVar("_Answer")


class HostError(Exception):
    """The host did not answer a question: lost connection, deadline, or a failing program."""


class Sudo(Enum):
    """How a program becomes root: it must, or it also reports something as the deploy user."""

    NEEDED = "needed"
    IF_POSSIBLE = "if possible"


def ask(
    host: Host,
    program: ModuleType,
    request: DataclassInstance,
    answer: type[_Answer],
    *,
    sudo: Sudo = Sudo.NEEDED,
    timeout: float = 120,
    secrets: bool = True,
) -> _Answer:
    """Run a program on a host and return its answer.

    Args:
        secrets: whether the request may hold one. Without, it travels in the command itself, which
            saves a round trip; others on the host can see that.
        answer: type of the program's answer: what the host sends is checked against it.
        timeout: seconds until the host counts as lost.

    Raises:
        HostError: with the reason, in one line.
    """
    label = f"sparkwright-{program.__name__.rpartition('.')[2].replace('_', '-')}"
    text, stdin = programs.BY_STANDARD_INPUT, None
    if secrets:
        stdin = programs.payload(program, encode(request))
    else:
        text = programs.argument(program, encode(request))
    command = StringCommand("python3", "-IS", "-c", QuoteString(text), label)
    return parse(label, execute(host, label, command, sudo, timeout, stdin), answer)


def run_program(
    host: Host, program: ModuleType, request: DataclassInstance, *, timeout: float = 120
) -> None:
    """Run a program on a host; it returns no answer.

    Raises:
        HostError: with the reason, in one line.
    """
    ask(host, program, request, object, timeout=timeout)


def execute(
    host: Host,
    label: str,
    command: StringCommand,
    sudo: Sudo,
    timeout: float,
    stdin: str | None = None,
) -> list[str]:
    """Run a command on a host; the lines of its standard output.

    Args:
        stdin: what it reads, so that it is seen in no process list.

    Raises:
        HostError: with the reason, in one line.
    """
    password: str | None = host.state.config.SUDO_PASSWORD or host.data.get("_sudo_password")
    arguments: dict[str, Any] = {"_timeout": timeout}
    if stdin is not None:
        arguments["_stdin"] = stdin
    if sudo is Sudo.NEEDED or password:
        arguments |= {"_sudo": True, "_sudo_password": password}
    else:
        # Without a password for sudo, once more as the user who logs in.
        command = StringCommand("sudo -n", command, "||", command)
    try:
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


def parse(label: str, lines: list[str], answer: type[_Answer]) -> _Answer:
    """A program's answer from its standard output.

    Raises:
        HostError: when it is not such an answer.
    """
    try:
        found = json.loads("\n".join(lines))
    except ValueError:
        raise HostError(
            f"{label}: the host's login prints text of its own (check .bashrc and /etc/profile.d)"
        ) from None
    try:
        return decode(answer, found)
    except Malformed as error:
        raise HostError(
            f"{label}: not a valid answer: {error} (is another version of sparkwright at work on "
            "this host?)"
        ) from None
