"""The shapes that every role's operations have.

``step`` compares what is with what shall be and acts only on a difference; ``verify`` looks and
never changes anything. Both fail one host alone, with one line, and never with a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import click
from pyinfra.api.command import FunctionCommand, PyinfraCommand
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from roles import lock, site
from roles.remote import HostError

#: Does what is pending on the host; returns what it did. Raises HostError.
Act = Callable[[Host, site.HostRun], Sequence[str]]
#: Says what is pending, by the probe alone.
Pending = Callable[[site.HostRun], Sequence[str]]
#: Looks at the host; returns what is wrong, as lines.
Look = Callable[[Host, site.HostRun], Sequence[str]]


def step(name: str, pending: Pending, act: Act) -> None:
    """Do what is pending, or nothing. A host that was refused has no operations at all."""
    if site.host_run(ctx_host.get()) is not None:
        _step(name=name, pending=pending, act=act)


def verify(name: str, look: Look) -> None:
    """Look at the host once everything before this is done; a fault fails the host."""
    if site.host_run(ctx_host.get()) is not None:
        _verify(name=name, look=look)


def together(name: str, act: Act) -> None:
    """Do what depends on what was seen of the other hosts: decided once all were probed."""
    if site.host_run(ctx_host.get()) is not None:
        _together(name=name, act=act)


@operation()
def _together(act: Act) -> Generator[PyinfraCommand, None, None]:
    host = ctx_host.get()
    run = site.host_run(host)
    if run is None or not ctx_state.get().is_executing:
        return
    try:
        done = list(act(host, run))
    except HostError as error:
        yield FunctionCommand(_fail, ([str(error)],), {})
        return
    for line in done:
        host.log(line)


@operation()
def _step(pending: Pending, act: Act) -> Generator[PyinfraCommand, None, None]:
    host = ctx_host.get()
    run = site.host_run(host)
    todo = list(pending(run)) if run is not None else []
    if not todo:
        host.noop("as it shall be")
        return
    if not ctx_state.get().is_executing:
        for line in todo:
            host.log(f"{click.style('would', fg='yellow')} {line}")
    yield FunctionCommand(_do, (act,), {})


@operation()
def _verify(look: Look) -> Generator[PyinfraCommand, None, None]:
    host = ctx_host.get()
    run = site.host_run(host)
    if run is None or not ctx_state.get().is_executing:
        return
    try:
        wrong = list(look(host, run))
    except HostError as error:
        wrong = [str(error)]
    if wrong:
        yield FunctionCommand(_fail, (wrong,), {})


def _do(state: State, host: Host, act: Act) -> bool:
    run = site.host_run(host)
    assert run is not None, "pyinfra runs operations on active hosts only"
    try:
        lock.take(host, run)
        done = act(host, run)
    except HostError as error:
        return _fail(state, host, str(error).splitlines())
    for line in done:
        run.changes.append(line)
        host.log(line)
    return True


def _fail(state: State, host: Host, wrong: Sequence[str]) -> bool:
    run = site.host_run(host)
    if run is not None:
        run.refused = wrong[0]
    for line in wrong:
        host.log(click.style(line, fg="red"))
    return False
