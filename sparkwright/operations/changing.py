"""The shape of our operations: compare, say why nothing is to do, or change as one command.

A change takes the host's lock first, is reported line by line, and fails one host alone with one
message and never with a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from difflib import unified_diff
from functools import wraps
from itertools import islice
from typing import ParamSpec

import click
from pyinfra.api.arguments_typed import PyinfraOperation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host
from pyinfra.api.operation import operation as pyinfra_operation
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from sparkwright.facts.asking import HostError
from sparkwright.facts.memory import memory
from sparkwright.facts.others import Ours, fail, failing
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.render import text
from sparkwright.operations import locks
from sparkwright.text.visible import visible

#: Where services, state and locks lie on a host, unless a setting says otherwise.
SERVICES_ROOT = "/opt/sparkwright"
MODELS_ROOT = "/opt/models"
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
#: What an operation yields.
Commands = Generator[PyinfraCommand, None, None]
#: Changes the host; returns what it did, in words. Raises HostError.
Act = Callable[[Host], Sequence[str]]
_P = ParamSpec("_P")


def operation() -> Callable[[Callable[_P, Commands]], PyinfraOperation[_P]]:
    """pyinfra's own decorator, for operations that ask a host what it is.

    A host that does not answer fails alone: pyinfra would end the run for all hosts.
    """

    def decorate(function: Callable[_P, Commands]) -> PyinfraOperation[_P]:
        @wraps(function)
        def answered(*args: _P.args, **kwargs: _P.kwargs) -> Commands:
            try:
                yield from function(*args, **kwargs)
            except HostError as error:
                lines = str(error).splitlines()
                if not ctx_state.get().is_executing:
                    for line in lines:
                        ctx_host.get().log(click.style(visible(line), fg="red"))
                yield failing(lines)

        return pyinfra_operation()(answered)

    return decorate


def change(
    pending: Sequence[str],
    act: Act,
    *,
    services_root: str,
    break_lock: bool = False,
    otherwise: str = "as desired",
    emergency: bool = False,
) -> Commands:
    """Do what is pending, or say that nothing is.

    Args:
        pending: what is to be done, in words; nothing for nothing.
        services_root: where the host's lock lies.
        break_lock: whether to take the lock from another run.
        otherwise: the reason why there is nothing to do.
        emergency: whether it is done although another run has the lock.
    """
    host = ctx_host.get()
    if not pending:
        host.noop(otherwise)
        return
    if not ctx_state.get().is_executing:
        for line in pending:
            host.log(f"{click.style('would', fg='yellow')} {visible(line)}")
    yield Ours(_change, (act, services_root, break_lock, emergency), {})


def show_diff(path: str, before: str | None, after: str) -> None:
    """With ``--diff``, the text of a file that changes."""
    host = ctx_host.get()
    if not host.state.config.DIFF or before == after:
        return
    host.log(f"{'Will create' if before is None else 'Will change'} {click.style(path, bold=True)}")
    old, new = (before or "").splitlines(), after.splitlines()
    for line in islice(unified_diff(old, new, lineterm="", n=2), 2, None):
        host.log(f"    {click.style(visible(line), fg=_COLOURS.get(line[:1]))}")


def look(inspect: Callable[[Host], Sequence[str]]) -> Commands:
    """Look at the host once everything before this is done; a fault fails the host.

    Args:
        inspect: returns what is wrong, as lines. Raises HostError.
    """
    host = ctx_host.get()
    if not ctx_state.get().is_executing:
        return
    try:
        wrong = list(inspect(host))
    except HostError as error:
        wrong = str(error).splitlines()
    if wrong:
        yield failing(wrong)


def verified(findings: Sequence[Finding], otherwise: str) -> Commands:
    """Fail the host for findings that are errors; report the others.

    Args:
        otherwise: what was found, where nothing is wrong.
    """
    host = ctx_host.get()
    for line in text(findings, hosts=False, paint=paint).splitlines():
        host.log(line)
    if bad := errors(findings):
        yield failing([f"{one.id}: {one.observed}, needed: {one.expected}" for one in bad])
    else:
        host.noop(otherwise)


def paint(level: str) -> str:
    """A finding's level in its colour."""
    return click.style(level, fg={"error": "red", "warning": "yellow"}.get(level, "cyan"))


def _change(
    state: State, host: Host, act: Act, services_root: str, break_lock: bool, emergency: bool
) -> bool:
    known = memory(host)
    try:
        locks.take(host, services_root, break_lock=break_lock, emergency=emergency)
        done = act(host)
    except HostError as error:
        return fail(state, host, str(error).splitlines())
    for line in done:
        known.changes.append(line)
        host.log(visible(line))
    return True
