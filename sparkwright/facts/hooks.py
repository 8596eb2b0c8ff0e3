"""Hooks into pyinfra outside its public interface, each with its reason and its worth: a measured
figure, or a behaviour that a test checks.

The hooks fit the source of pyinfra 3.10.0. Where the public ``BaseStateCallback`` suffices,
``run/connections.py`` uses this callback instead.
"""

import inspect
import logging
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from traceback import walk_stack
from typing import Any

import click
import gevent
from pyinfra.api import util
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.connectors import local, ssh
from pyinfra.connectors import util as connecting
from pyinfra.context import ctx_state

from sparkwright.facts import output
from sparkwright.host.lib.records import encode
from sparkwright.text.visible import visible_but_colours


def command_line() -> dict[str, Any]:
    """pyinfra's own options of this run, by name; empty if pyinfra runs as a library.

    Reason: the state lacks ``--dry``, ``--json`` and the arguments of ``--limit``. Hosts
        are prepared in greenlets, which have no click context: there pyinfra's own parser reads the
        command line once more.

    Worth: a run detects whether it may change anything
    (`test_pyinfras_command_line_calls_the_plan_before_the_first_connection`).
    """
    context = click.get_current_context(silent=True)
    program = sys.modules.get("pyinfra_cli.cli")
    if context is None and program is not None:
        command: click.Command = program.cli
        context = command.make_context("pyinfra", sys.argv[1:], resilient_parsing=True)
    return dict(context.params) if context else {}


def own(module: str) -> Any:
    """A module of pyinfra's own command line, by its name.

    Reason: reading an inventory, calling a deploy function for every host, and printing results are
        not in pyinfra's API.

    Worth: commands read inventories and print results as a deploy does
    (`test_a_session_changes_hosts_and_prints_pyinfras_output`).
    """
    return import_module(f"pyinfra_cli.{module}")


def before_connecting(
    plan: Callable[[Inventory, list[Host] | None], None], ready: Callable[[State], None]
) -> None:
    """Call ``plan`` once inventory and group_data are read, then ``ready`` with the initialized
    state.

    Reason: ``host_before_connect`` is called in each host's own greenlet, when other hosts are
    already connected; a mistake in the user's files must stop the run before any host is touched.
    Callbacks can only be added after ``State.init``, which drops earlier callbacks. ``State.init``
    is the only call between reading the inventory and connecting (``pyinfra_cli.cli._main``).

    Worth: a mistake in the user's files touches no host
    (`test_pyinfras_command_line_calls_the_plan_before_the_first_connection`).
    """
    state: State = ctx_state.get()
    original = state.init

    def init(inventory: Inventory, config: Any, initial_limit: list[Host] | None = None) -> None:
        plan(inventory, initial_limit)
        original(inventory, config, initial_limit=initial_limit)
        ready(state)

    state.init = init  # type: ignore[method-assign]


def pass_over_broken_group_data(instead: Callable[[str], dict[str, Any]]) -> None:
    """Read the inventory although files of group_data can't be run.

    Reason: ``make_inventory_from_files`` runs every file of group_data, needed or not, and the
        first exception ends the run.

    Worth: an emergency's commands work with a broken group_data
    (`test_every_command_of_an_emergency_works_without_a_plan`).

    Args:
        instead: a file's path -> data used if the file can't be run.
    """
    inventory = own("inventory")

    original = inventory._get_group_data

    def get_group_data(path: str) -> dict[str, dict[str, Any]]:
        files = sorted(map(str, Path(path).glob("*.py"))) if Path(path).is_dir() else [path]
        result: dict[str, dict[str, Any]] = {}
        for file in files:
            try:
                result.update(original(file))
            except (Exception, SystemExit):
                result[Path(file).stem] = instead(file)
        return result

    inventory._get_group_data = get_group_data


def guard_connections() -> None:
    """Limit a host's output, and prevent its password prompts and cursor movements.

    Reasons: ``read_buffer`` reads without a limit; ``execute_command_with_sudo_retry`` prompts for
        sudo's password, in the middle of a run, if a failing command prints a certain line, and
        sends the password to the host; lines of the log, errors of the connection among them, are
        printed unfiltered.

    Worth: no host gets sudo's password, or fills the memory
    (`test_a_password_prompt_of_a_host_gets_no_password`,
    `test_output_without_end_is_not_read`, `test_lines_of_libraries_are_escaped`).
    """
    connecting.read_buffer = output.read  # type: ignore[assignment]
    for connector in (ssh, local):
        connector.execute_command_with_sudo_retry = (  # type: ignore[attr-defined]
            lambda _host, _arguments, execute: execute()
        )
    for name in ("pyinfra", "paramiko.transport"):
        logger = logging.getLogger(name)
        if _printable not in logger.filters:
            logger.addFilter(_printable)


def _printable(record: logging.LogRecord) -> bool:
    """Remove terminal codes other than colours from a line."""
    record.msg, record.args = visible_but_colours(record.getMessage()), ()
    return True


def hide_frames() -> None:
    """Make pyinfra log messages of operations and connections, and errors, without its own frames:
    the run's stages, connected and ready hosts, results of each operation.

    Reason: pyinfra's command line prints these lines at every verbosity.

    Worth: the reason is the first line of a deploy that fails
    (`test_a_command_begins_and_ends_with_its_only_problem`).
    """
    logging.getLogger("pyinfra").addFilter(_Frames())
    wrapped = own("exceptions").WrappedError
    show = wrapped.show
    # The reason why each host was lost is already printed.
    wrapped.show = lambda error: "No hosts remaining" in error.message or show(error)


class _Frames(logging.Filter):
    """Pass messages of operations (``Host.log``), errors, and changes that wait for a
    confirmation.
    """

    _confirmed = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is shown."""
        message = record.getMessage()
        if message.startswith("--> "):
            self._confirmed = message == "--> Detected changes:"
            return self._confirmed
        if record.funcName == "print_rows":
            return self._confirmed
        # The lines before this message have the reason why commands were not executed.
        is_message = record.funcName == "log" or record.levelno > logging.INFO
        return is_message and not re.search(r"Error: .*executed \d+ command", message)


def load_keys_with(loaded: Callable[..., Any]) -> None:
    """Load private keys through ``loaded(load, state, key_filename, key_password)``.

    Reason: exceptions of ``get_private_key`` are not ``ConnectError``, and end the run for all
        hosts.

    Worth: a key that can't be read fails its hosts alone
    (`test_an_unusable_key_fails_its_hosts_alone`).
    """
    connector: Any = ssh
    if not isinstance(connector.get_private_key, partial):
        connector.get_private_key = partial(loaded, connector.get_private_key)


def only_connect_errors(host: Host) -> None:
    """Let any exception of a connection fail this host alone.

    Reason: ``connect_all`` raises every exception that is not a ``ConnectError``, for all hosts: a
        port that is not a number, an unreadable key in ssh_config.

    Worth: a connection that can't be made fails its host alone
    (`test_any_exception_of_a_connection_fails_its_host_alone`).
    """
    connector: Any = host.connector
    connect = connector.connect

    def guarded() -> None:
        try:
            connect()
        except ConnectError:
            raise
        except Exception as error:
            raise ConnectError(f"{type(error).__name__}: {error}") from error

    connector.connect = guarded


def never_ask_about_failed_hosts(state: State) -> None:
    """Let the other hosts continue without a prompt when a host fails.

    Reason: without ``--yes`` pyinfra prompts after each failure; the run skips a failed host and
        names it at the end, so no prompt is needed.

    Worth: no prompt stops a run (`test_no_prompt_appears_when_a_host_fails`).
    """
    state.should_raise_failed_hosts = lambda _state: False


def leave_out(host: Host) -> None:
    """Skip all further operations on this host.

    Reason: ``State.fail_hosts`` raises if no host is left, and the final report has more details
        than the exception's message. Outside of a site pyinfra also prompts whether to continue,
        even under ``--dry``.

    Worth: the last refused host is reported like all others
        (`test_every_fault_of_a_refused_host_is_reported_at_once`).
    """
    state = host.state
    asks, state.should_raise_failed_hosts = state.should_raise_failed_hosts, lambda _: False
    with suppress(PyinfraError):
        state.fail_hosts({host})
    state.should_raise_failed_hosts = asks


def set_aside(host: Host) -> None:
    """Skip all further operations on this host, and do not count the host as failed.

    Reason: only ``State.fail_hosts`` removes a host from a run, but it makes pyinfra end with 1.

    Worth: a host in maintenance is not a failure
    (`test_a_deploy_over_a_host_in_maintenance_succeeds`).
    """
    host.state.active_hosts.discard(host)


def count_executions(host: Host, count: Callable[[], None]) -> None:
    """Call ``count`` for each remote execution.

    Reason: no callback reports executions.

    Worth: the report has the number of executions, which tests check
        (`test_connections_count_executions_and_their_end_releases_the_lock`).
    """
    connector: Any = host.connector
    run = connector.run_shell_command
    if getattr(run, "counted", False):
        return  # the host is connected again after a reboot

    def counted(*args: Any, **kwargs: Any) -> Any:
        count()
        return run(*args, **kwargs)

    counted.counted = True  # type: ignore[attr-defined]
    connector.run_shell_command = counted


def before_disconnecting(host: Host, leave: Callable[[], None]) -> None:
    """Call ``leave`` before the connection is closed.

    Reason: ``host_disconnect`` comes after the disconnect, when a lock on the host can't be
    released any more.

    Worth: no lock outlives its run
    (`test_connections_count_executions_and_their_end_releases_the_lock`).
    """
    connector: Any = host.connector
    disconnect = getattr(connector, "disconnect", None)  # some connectors lack this method

    def left() -> None:
        leave()
        if disconnect:
            disconnect()

    connector.disconnect = left


def pass_commands(
    host: Host, op_hash: str, passed: Callable[[PyinfraCommand], PyinfraCommand]
) -> None:
    """Call ``passed`` with each command of an operation before it runs, and name the running
    command.

    Reason: at ``operation_host_start`` pyinfra has not yet determined whether the operation has
        commands, and ``operation_host_success`` does not report whether a command ran.

    Worth: foreign operations run under the host's lock, and are counted
        (`test_a_guard_prevents_another_operation_from_running_a_command`).
    """
    if (data := host.state.ops[host].get(op_hash)) is not None:
        commands = data.command_generator
        data.command_generator = lambda: (passed(command) for command in commands())


def printable(*records: type) -> None:
    """Make pyinfra print these records as JSON (``pyinfra HOST fact``).

    Reason: pyinfra's encoder does not support dataclasses, and requires an undocumented method
        ``to_json``. The records' modules do not define the method: these modules are sent to hosts,
        which do not need the method.

    Worth: facts print as JSON (`test_pyinfras_command_line_prints_facts_as_json`).
    """
    for record in records:
        record.to_json = encode  # type: ignore[attr-defined]


def quick_operation_order() -> None:
    """Make pyinfra find an operation's place in the deploy without reading source files.

    Reason: pyinfra uses only the line numbers of the stack, but reads the text around each line
    through ``inspect``: 3 ms for each operation and host, most of a run's time for many hosts.

    Worth: 3 ms for each operation and host.
    """

    def stack() -> list[tuple[inspect.Traceback]]:
        return [
            (inspect.Traceback(frame.f_code.co_filename, line, "", None, None),)
            for frame, line in walk_stack(sys._getframe(1))
        ]

    vars(util).update(stack=stack, getframeinfo=lambda place: place)


def with_transport(host: Host, factory: Callable[..., Any]) -> None:
    """Make the connection with ``factory(socket, **arguments)``, unless the user set a factory.

    Reason: ``host_connect`` is called after the login, which waits 40 ms for each small packet.
    ``ssh_paramiko_connect_kwargs`` is public; changing the connector's data in
    ``host_before_connect`` is not public.

    Worth: 40 ms for each packet of the login.
    """
    data: Any = getattr(host.connector, "data", None)
    if isinstance(data, dict) and "ssh_paramiko_connect_kwargs" in data:
        given = data["ssh_paramiko_connect_kwargs"] or {}
        data["ssh_paramiko_connect_kwargs"] = {"transport_factory": factory, **given}


def keep_a_channel_open(transport: Any) -> None:
    """Open the next channel while the present channel is in use.

    Reason: each execution opens its own channel, and waits one round trip for it.

    Worth: one round trip for each execution.
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
    """paramiko's transport of this host's connection; None if the connector has no transport.

    Reason: pyinfra sets no socket options and no keep-alive, and has no option for them.

    Worth: a lost host is noticed within half a minute, and a login by root needs no sudo
    (`test_connections_use_our_transport`).
    """
    client = getattr(host.connector, "client", None)
    return client.get_transport() if client is not None else None


def share_facts(host: Host, answered: Callable[[type, dict[str, Any]], tuple[bool, Any]]) -> None:
    """Call ``answered`` before a fact is read from the host: ``(True, value)`` for a known fact.

    Reason: pyinfra caches no facts, and a fact can't answer without a remote execution.

    Worth: ten operations that need the same fact query the host once
        (`test_a_fact_with_an_observed_value_is_not_queried`).
    """
    original = host.get_fact

    def get_fact(fact: Any, *args: Any, **kwargs: Any) -> Any:
        cached, value = answered(fact, kwargs) if not args else (False, None)
        return value if cached else original(fact, *args, **kwargs)

    host.get_fact = get_fact  # type: ignore[method-assign, assignment]
