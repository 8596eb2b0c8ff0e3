"""Structure of sparkwright's operations: compare, report the reason for no change, or change as one
command.

A change takes the host's lock first and is reported line by line. A failure fails only that host,
with one message and never with a traceback.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import wraps
from types import ModuleType
from typing import ParamSpec, Protocol, TypeVar

import click
from pyinfra.api.arguments_typed import PyinfraOperation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host
from pyinfra.api.operation import operation as pyinfra_operation
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from sparkwright.facts import hooks
from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.others import Ours, fail, failing
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.render import paint, text
from sparkwright.findings.user_error import UserError
from sparkwright.operations.lib import locks
from sparkwright.text.visible import visible

#: Commands that an operation yields.
Commands = Generator[PyinfraCommand, None, None]
#: Function that changes the host and returns its changes as text. Raises HostError.
Act = Callable[[Host], Sequence[str]]
_P = ParamSpec("_P")


def operation() -> Callable[[Callable[_P, Commands]], PyinfraOperation[_P]]:
    """Decorate an operation that queries its host. The decorator is built on pyinfra's own
    decorator.

    Only the host that does not answer fails; pyinfra would end the run for all hosts.
    """

    def decorate(function: Callable[_P, Commands]) -> PyinfraOperation[_P]:
        @wraps(function)
        def answered(*args: _P.args, **kwargs: _P.kwargs) -> Commands:
            if not ctx_state.get().is_executing and ctx_host.get() in ctx_state.get().failed_hosts:
                return  # the host failed while an earlier operation was compared
            try:
                yield from function(*args, **kwargs)
            except (HostError, UserError) as error:
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
    otherwise: str = "as desired",
    emergency: bool = False,
    forget: bool = True,
) -> Commands:
    """Apply pending changes, or report that no change is pending.

    Args:
        pending: descriptions of the changes; empty without changes.
        otherwise: the reason for no change.
        emergency: whether to apply the changes even if another run has the lock.
        forget: whether the host must be observed again after the change.
    """
    host = ctx_host.get()
    if not pending:
        host.noop(otherwise)
        return
    announce(pending)
    yield acting(act, emergency=emergency, forget=forget)


def acting(act: Act, *, emergency: bool = False, forget: bool = True) -> Ours:
    """Return the command that takes the host's lock and makes the change; see `change`."""
    return Ours(_change, (act, emergency, forget), {})


def announce(pending: Sequence[str]) -> None:
    """Log the pending changes before the first change."""
    if not ctx_state.get().is_executing:
        host = ctx_host.get()
        memory(host).pending[host.current_op_hash] = list(pending)
        for line in pending:
            host.log(f"{click.style('would', fg='yellow')} {visible(line)}")


def act_by(program: ModuleType, request: object, timeout: float = 120) -> Act:
    """Return a function that runs a program on the host and returns its report."""
    return lambda host: ask(host, program, request, tuple[str, ...], timeout=timeout)


class _Answer(Protocol):
    @property
    def faults(self) -> Sequence[str]: ...


_Answered = TypeVar("_Answered", bound=_Answer)


def accept(answer: _Answered, answered: Callable[[_Answered], object]) -> None:
    """Pass an answer on, and fail the host if a part of it failed."""
    answered(answer)
    if answer.faults:
        raise HostError("\n".join(answer.faults))


def unheard(_: object) -> None:
    """Ignore an answer."""


def look(inspect: Callable[[Host], Sequence[str]]) -> Commands:
    """Inspect the host after all earlier operations; a fault fails the host.

    Args:
        inspect: function that returns the faults, as lines, or raises HostError.
    """
    if not ctx_state.get().is_executing:
        return
    try:
        faults = list(inspect(ctx_host.get()))
    except HostError as error:
        faults = str(error).splitlines()
    if faults:
        yield failing(faults)


def verified(findings: Sequence[Finding], otherwise: str) -> Commands:
    """Fail the host for findings that are errors; report all other findings.

    The host fails before its first operation runs, also under ``--dry``, unless an earlier
    operation of the run has changes, which may fix the fault.

    Args:
        otherwise: the observation to report if there is no fault.
    """
    host = ctx_host.get()
    tell(host, findings)
    if faults := [
        f"{each.id}: {each.observed}, needed: {each.expected}" for each in errors(findings)
    ]:
        if ctx_state.get().is_executing or host.state.get_meta_for_host(host).ops_change:
            yield failing(faults)
        else:
            fail(host.state, host, faults)
            hooks.leave_out(host)
    else:
        host.noop(otherwise)


def tell(host: Host, findings: Iterable[Finding]) -> None:
    """Log findings of a host."""
    for line in text(findings, hosts=False, paint=paint).splitlines():
        host.log(line)


def _change(state: State, host: Host, act: Act, emergency: bool, forget: bool) -> bool:
    try:
        locks.take(host, emergency=emergency)
        done = act(host)
    except (HostError, UserError) as error:
        return fail(state, host, str(error).splitlines())
    if forget:
        memory(host).forget()
    for line in done:
        memory(host).changes.append(line)
        host.log(visible(line))
    return True
