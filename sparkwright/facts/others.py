"""Foreign operations: count their changes, and drop the host's observation after the operation.

sparkwright's own operations count their changes themselves. This module follows operations of
pyinfra or of the user, so that these operations can run between sparkwright's operations.
"""

from collections.abc import Sequence
from functools import partial

import click
from pyinfra.api.command import FunctionCommand, PyinfraCommand
from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

from sparkwright.facts import hooks
from sparkwright.facts.asking import HostError
from sparkwright.facts.memory import memory
from sparkwright.text.visible import visible

_EXPOSED = (
    "pyinfra puts sudo's password into a command line, which every user of the host can read while "
    "it runs: configure sudo without a password (docs/install.md, sudo)"
)


class Ours(FunctionCommand):
    """A command of sparkwright's own operations, which this module does not follow."""


class Others(BaseStateCallback):
    """Follow every operation of a run on every host, in each of pyinfra's modes."""

    def operation_host_start(self, state: State, host: Host, op_hash: str) -> None:  # type: ignore[override]
        """Follow the commands of an operation that starts on a host."""
        hooks.pass_commands(host, op_hash, partial(_passed, host, op_hash))

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        """Record the changes of an operation that ended."""
        host_memory = memory(host)
        if op_hash in host_memory.others:
            host_memory.changes.append(_name(state, op_hash))
            host_memory.forget()

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        """Record an operation that failed."""
        host_memory = memory(host)
        host_memory.forget()
        ignored = state.get_op_data_for_host(host, op_hash).global_arguments["_ignore_errors"]
        if host_memory.failure is None and not ignored:
            host_memory.failure = f"{_name(state, op_hash)} failed"

    def host_disconnect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Record a fact that failed; pyinfra calls this function at the end of a run."""
        host_memory = memory(host)
        if host_memory.failure is None and host in state.failed_hosts:
            host_memory.failure = "a fact failed: pyinfra's log names the fact"


def follow(state: State) -> None:
    """Follow the operations of a run, once."""
    if not any(isinstance(handler, Others) for handler in state.callback_handlers):
        state.add_callback_handler(Others())


def failing(problem: Sequence[str]) -> Ours:
    """A command that only fails, with these lines; the first line is the reason in the report."""
    return Ours(fail, (problem,), {})


def fail(state: State, host: Host, problem: Sequence[str]) -> bool:
    """Log these lines for a host, and count the host as failed in the rest of pyinfra's run."""
    memory(host).failure = problem[0]
    for line in problem:
        host.log(click.style(visible(line), fg="red"))
    return False


def _passed(host: Host, op_hash: str, command: PyinfraCommand) -> PyinfraCommand:
    """Return the command if this run may change the host; otherwise a command that fails."""
    if isinstance(command, Ours):
        return command
    host_memory = memory(host)
    try:
        if host_memory.guard:
            host_memory.guard()
    except HostError as error:
        return failing(str(error).splitlines())
    host_memory.others.add(op_hash)
    if _exposes(host, op_hash):
        host.log(click.style(f"{_name(host.state, op_hash)}: {_EXPOSED}", fg="yellow"))
    return command


def _exposes(host: Host, op_hash: str) -> bool:
    """Return whether a foreign operation's command contains sudo's password, which pyinfra can't
    pass in another way.
    """
    arguments = host.state.get_op_data_for_host(host, op_hash).global_arguments
    return bool(arguments.get("_sudo") and arguments.get("_sudo_password"))


def _name(state: State, op_hash: str) -> str:
    return ", ".join(sorted(state.get_op_meta(op_hash).names))
