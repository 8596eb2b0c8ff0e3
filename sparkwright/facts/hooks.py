"""Hooks into pyinfra that are no public interface of it, each with its reason.

Read in pyinfra 3.10.0. What its public ``BaseStateCallback`` offers is used where it suffices
(``connections.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import click
import gevent
from pyinfra.api import util
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.context import ctx_state


def command_line() -> dict[str, Any]:
    """pyinfra's own options of this run, by name.

    Reason: the state knows neither ``--dry`` nor ``--json``, nor what ``--limit`` was given.
    """
    return dict(click.get_current_context().params)


def before_connecting(
    plan: Callable[[Inventory, list[Host] | None], None], ready: Callable[[State], None]
) -> None:
    """Call ``plan`` once inventory and group_data are read, and ``ready`` with the state after it.

    Reason: ``host_before_connect`` is called in each host's own greenlet, when others are connected
    already; a mistake in the user's files has to stop the run before any host is touched. And
    callbacks can only be added after ``State.init``, which forgets them. It is the one call between
    reading the inventory and connecting (``pyinfra_cli.cli._main``).
    """
    state: State = ctx_state.get()
    original = state.init

    def init(inventory: Inventory, config: Any, initial_limit: list[Host] | None = None) -> None:
        plan(inventory, initial_limit)
        original(inventory, config, initial_limit=initial_limit)
        ready(state)

    state.init = init  # type: ignore[method-assign]


def never_ask_about_failed_hosts(state: State) -> None:
    """Let the other hosts go on without a question when one fails.

    Reason: without ``--yes`` pyinfra asks after each failure; a host that fails is left alone and
    named at the end, and nobody needs to be asked.
    """
    state.should_raise_failed_hosts = lambda _state: False


def leave_out(host: Host) -> None:
    """No further operation runs on this host.

    Reason: ``State.fail_hosts`` raises when no host is left, and what is reported at the end says
    more than its message.
    """
    with suppress(PyinfraError):
        host.state.fail_hosts({host})


def wrap_connector(host: Host, count: Callable[[], None], leave: Callable[[], None]) -> None:
    """Call ``count`` for each remote execution and ``leave`` before the connection is closed.

    Reason: no callback tells of an execution, and ``host_disconnect`` comes after the disconnect,
    when a lock on the host can't be released any more.
    """
    connector: Any = host.connector
    run, disconnect = connector.run_shell_command, connector.disconnect

    def counted(*args: Any, **kwargs: Any) -> Any:
        count()
        return run(*args, **kwargs)

    def left() -> None:
        leave()
        disconnect()

    connector.run_shell_command = counted
    connector.disconnect = left


def quick_operation_order() -> None:
    """Have pyinfra find an operation's place in the deploy without reading source files.

    Reason: it goes by the line numbers of the stack, and asks ``inspect`` for the text around each
    line, which it does not use: 3 ms for each operation and host, most of a run's time for many.
    """
    util.stack = partial(inspect.stack, 0)  # type: ignore[attr-defined]
    util.getframeinfo = partial(inspect.getframeinfo, context=0)  # type: ignore[attr-defined]


def with_transport(host: Host, factory: Callable[..., Any]) -> None:
    """Have the connection made with ``factory(socket, **arguments)``, unless the user set one.

    Reason: by the time of ``host_connect`` the login is over, and it waits 40 ms for each of its
    small packets. ``ssh_paramiko_connect_kwargs`` is public; that the connector's data can still be
    changed in ``host_before_connect`` is not.
    """
    data: Any = getattr(host.connector, "data", None)
    if isinstance(data, dict) and "ssh_paramiko_connect_kwargs" in data:
        given = data["ssh_paramiko_connect_kwargs"] or {}
        data["ssh_paramiko_connect_kwargs"] = {"transport_factory": factory, **given}


def keep_a_channel_open(transport: Any) -> None:
    """Have the next channel opened while this one is used.

    Reason: each execution opens a channel of its own, and waits one round trip for it.
    """
    open_session = transport.open_session
    waiting = [gevent.spawn(open_session)]

    def ready(*args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return open_session(*args, **kwargs)
        channel, waiting[0] = waiting[0], gevent.spawn(open_session)
        return channel.get()

    transport.open_session = ready


def transport_of(host: Host) -> Any:
    """paramiko's transport of this host's connection; None where the connector has none.

    Reason: pyinfra sets no socket options and no keep-alive, and offers no way to.
    """
    client = getattr(host.connector, "client", None)
    return client.get_transport() if client is not None else None


def share_facts(host: Host, answered: Callable[[type, dict[str, Any]], tuple[bool, Any]]) -> None:
    """Ask ``answered`` before a fact is asked of the host: ``(True, value)`` where it is known.

    Reason: pyinfra caches no facts, and a fact has no way to answer without a remote execution.
    """
    original = host.get_fact

    def get_fact(fact: Any, *args: Any, **kwargs: Any) -> Any:
        known, value = answered(fact, kwargs) if not args else (False, None)
        return value if known else original(fact, *args, **kwargs)

    host.get_fact = get_fact  # type: ignore[method-assign, assignment]


def changed_by(host: Host) -> set[str]:
    """Operations of this run that have changed the host, by pyinfra's hash of each.

    Reason: the callback of an operation's success comes before pyinfra itself knows whether it
    changed anything.
    """
    return {
        name
        for name, one in host.state.ops.get(host, {}).items()
        if one.operation_meta.is_complete() and one.operation_meta.did_change()
    }
