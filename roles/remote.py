"""Running our own small programs on a host: one round trip, nothing left behind.

A program is Python source of this repository (``roles/<role>/host/*.py``) with a function
``main(request) -> answer``, both plain JSON data. Source and request travel over standard input,
so that nothing of them is seen in the host's process list, and no file has to be put there first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any

from paramiko import SSHException
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from sparkwright.facts import programs


def command(label: str) -> StringCommand:
    """The command that runs a program on a host; ``label`` shows in logs and process lists."""
    return StringCommand("python3", "-IS", "-c", QuoteString(programs.BY_STANDARD_INPUT), label)


def _by_sudo_if_possible(label: str) -> StringCommand:
    return StringCommand(
        "S=; sudo -n true 2>/dev/null && S='sudo -n'; exec $S", *command(label).bits
    )


def answer(output: list[str]) -> Any:
    """The program's answer from its standard output."""
    return json.loads("\n".join(output))


class Sudo(Enum):
    """How a program becomes root: it must, or it also tells something as the deploy user."""

    NEEDED = "needed"
    IF_POSSIBLE = "if possible"


class HostError(Exception):
    """The host did not answer a question: lost connection, deadline, or a failing program."""


def ask(
    host: Host,
    label: str,
    program: ModuleType,
    request: Mapping[str, Any],
    *,
    sudo: Sudo = Sudo.NEEDED,
    timeout: int = 120,
) -> Any:
    """Run a program on a host and return its answer. One round trip.

    Args:
        timeout: seconds until the host counts as lost.

    Raises:
        HostError: with the reason, in one line.
    """
    arguments: dict[str, Any] = {"_stdin": programs.payload(program, request), "_timeout": timeout}
    password = host.state.config.SUDO_PASSWORD or host.data.get("_sudo_password")
    by_pyinfra = sudo is Sudo.NEEDED or bool(password)
    if by_pyinfra:
        arguments |= {"_sudo": True, "_sudo_password": password}
    run = command(label) if by_pyinfra else _by_sudo_if_possible(label)
    try:
        ok, output = host.run_shell_command(run, **arguments)
    except TimeoutError:
        raise HostError(f"{label}: no answer within {timeout} s") from None
    except (OSError, EOFError, SSHException, PyinfraError) as error:
        raise HostError(
            f"{label}: the connection is lost ({error or type(error).__name__})"
        ) from None
    if not ok:
        said = [line for line in output.stderr_lines if line.strip()]
        raise HostError(f"{label}: {said[-1] if said else 'failed without a word'}")
    try:
        return answer(output.stdout_lines)
    except ValueError:
        raise HostError(
            f"{label}: the host's login prints text of its own (check .bashrc and /etc/profile.d)"
        ) from None
