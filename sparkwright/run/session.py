"""Sessions: a command plans its run, connects to hosts, and queries or changes them, in one
process.
"""

import atexit
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import Any, TypeVar

import click
import gevent
import pyinfra
from gevent.queue import Empty, Queue
from pyinfra.api.config import Config
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.operations import run_ops
from pyinfra.api.output import set_echo, set_formatter
from pyinfra.api.state import BaseStateCallback, State, StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state

from sparkwright.config.inventory import limited, overrides_by_key
from sparkwright.facts import asking, hooks
from sparkwright.facts.memory import memory
from sparkwright.operations.lib.progress import LIVE
from sparkwright.results.answers import Answers
from sparkwright.run import ending, site
from sparkwright.run.state import HostRun, Run

T = TypeVar("T")
#: Function that queries a host and returns the answer.
Question = Callable[[Host, HostRun], T]
#: Function that calls operations for a host; the operations add their answers to the dictionary.
Change = Callable[[Host, HostRun, dict[str, T]], None]
#: Function that queries a host repeatedly, and passes each answer to a function.
Watch = Callable[[Host, HostRun, Callable[[T], None]], None]

#: Function called with a host's name and its latest event.
Notice = Callable[[str, str], None]

#: Command-line options whose name in pyinfra's configuration is not the same name in capitals.
_RENAMED = {"shell_executable": "SHELL"}
#: Command-line options that become data of every host.
_DATA = ("ssh_user", "ssh_port", "ssh_key")
#: Seconds without an answer after which ``Session.watch`` yields None.
_QUIET = 0.25
_LOG = logging.getLogger("pyinfra")


@dataclass
class Session:
    """Hosts of one command, with their plan. The first request to a host opens its connection."""

    run: Run
    inventory: Inventory
    notice: Notice

    @property
    def hosts(self) -> list[Host]:
        """The chosen hosts, in the inventory's order."""
        return [host for host in self.inventory if host.name in self.run.hosts]

    def ask(self, question: Question[T], only: Collection[str] | None = None) -> Answers[T]:
        """Query every host as soon as it is connected; a failed host is not queried again.

        Args:
            only: names of hosts; None for all hosts.
        """
        answers: dict[str, T] = {}

        def asked(host: Host) -> None:
            if _connected(host):
                try:
                    answers[host.name] = question(host, self.run.hosts[host.name])
                except asking.HostError as error:
                    memory(host).failure = str(error)
                self.notice(host.name, "answered" if host.name in answers else "failed")

        chosen = [host for host in self.hosts if only is None or host.name in only]
        pool = self.inventory.state.pool
        greenlets = [pool.spawn(asked, host) for host in chosen if memory(host).failure is None]
        try:
            for greenlet in greenlets:
                greenlet.get()
        finally:
            gevent.killall(greenlets)
        return self.answers(answers)

    def watch(self, watch: Watch[T]) -> Iterator[tuple[str, T] | None]:
        """Yield hosts and answers as they arrive; None after a quarter of a second without an
        answer.

        The iteration ends once every host has ended or failed. `answers` has the reason for each
        failed host.
        """
        queue: Queue[tuple[str, T]] = Queue()

        def watched(host: Host) -> None:
            try:
                watch(
                    host, self.run.hosts[host.name], lambda answer: queue.put((host.name, answer))
                )
            except asking.HostError as error:
                memory(host).failure = str(error)

        greenlets = [gevent.spawn(watched, host) for host in self.hosts]
        try:
            while not queue.empty() or not all(greenlet.dead for greenlet in greenlets):
                try:
                    yield queue.get(timeout=_QUIET)
                except Empty:
                    yield None
            for greenlet in greenlets:
                greenlet.get()
        finally:
            gevent.killall(greenlets)

    def change(self, change: Change[T]) -> Answers[T]:
        """Run operations on the hosts, once all operations are prepared."""
        state, answers = self.inventory.state, dict[str, T]()

        def prepared() -> None:
            host = ctx_host.get()
            change(host, self.run.hosts[host.name], answers)

        _LOG.info("--> Connecting to hosts...")
        state.set_stage(StateStage.Connect)
        with suppress(PyinfraError):  # every host has failed, and each failure is recorded
            connect_all(state)
        _LOG.info("--> Preparing operations...")
        state.set_stage(StateStage.Prepare)
        hooks.own("util").load_func(state, prepared)
        if not self.run.dry:
            _LOG.info("--> Beginning operation run...")
            state.set_stage(StateStage.Execute)
            with suppress(PyinfraError):
                run_ops(state)
        return self.answers(answers)

    def show(self, change: Change[None], *, as_json: bool) -> bool:
        """Run operations, and print their results and the run's table, like a deploy.

        Returns:
            Whether no host failed.
        """
        self.change(change)
        state, prints = self.inventory.state, hooks.own("prints")
        if as_json:
            prints.print_run_json(state, dry=self.run.dry)
        else:
            _LOG.info("--> Detected changes:" if self.run.dry else "--> Results:")
            (prints.print_meta if self.run.dry else prints.print_results)(state)
        ending.report(self.run, as_json=as_json)
        return not state.failed_hosts

    def answers(self, answers: dict[str, T]) -> Answers[T]:
        """Return the answers of this session, with a reason for each host without an answer."""
        failures = {
            name: host.memory.failure or "no answer"
            for name, host in self.run.hosts.items()
            if name not in answers
        }
        ordered = {name: answers[name] for name in self.run.hosts if name in answers}
        return Answers(ordered, failures, self.run.broken)


def end_here() -> None:
    """Make Ctrl-C raise KeyboardInterrupt in this greenlet.

    Python would raise the exception in the running greenlet, where a server's thread would swallow
    it.
    """
    gevent.signal_handler(signal.SIGINT, gevent.getcurrent().throw, KeyboardInterrupt)


class Progress(BaseStateCallback):
    """Callbacks that report each connected host and the result of its operation."""

    def __init__(self, notice: Notice) -> None:
        self._notice = notice

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Report a connected host."""
        self._notice(host.name, "asked")

    def host_connect_error(self, state: State, host: Host, error: Exception) -> None:  # type: ignore[override]
        """Report a host that can't be reached."""
        self._notice(host.name, "not reached")

    def operation_host_success(self, state: State, host: Host, *_: object) -> None:  # type: ignore[override]
        """Report a successful operation."""
        self._notice(host.name, "answered")

    def operation_host_error(self, state: State, host: Host, *_: object, **__: object) -> None:  # type: ignore[override]
        """Report a failed operation."""
        self._notice(host.name, "failed")


def _connected(host: Host) -> bool:
    host.connect()
    if host.connected:
        host.state.activate_host(host)
    return bool(host.connected)


@contextmanager
def session(
    invocation: site.Invocation,
    connection: Mapping[str, Any] | None = None,
    *,
    notice: Notice = lambda _host, _event: None,
    shown: bool = False,
    frames: bool = False,
) -> Iterator[Session]:
    """Plan a run over the site in the current folder, and close its connections at the end.

    Args:
        connection: pyinfra's options of connection and sudo, by name.
        notice: function that is called for each host's request, its progress and its end.
        shown: whether pyinfra's messages about hosts go to standard error.
        frames: whether to print pyinfra's own frames.

    Raises:
        UserError: the user's input has a mistake; raised before any connection.
        click.ClickException: pyinfra can't use the input.
    """
    _set_output(shown=shown, frames=frames)
    try:
        opened = _opened(invocation, dict(connection or {}), notice)
    except PyinfraError as error:
        raise click.ClickException(str(error)) from error
    state = opened.inventory.state
    LIVE.notice = None if shown else notice
    try:
        yield opened
    finally:
        LIVE.notice = None
        state.current_stage = StateStage.Disconnect
        disconnect_all(state)


def _opened(invocation: site.Invocation, connection: dict[str, Any], notice: Notice) -> Session:
    broken = site.read_files(invocation)
    state, config = site.CommandState(check_for_changes=invocation.dry), Config()
    state.cwd = str(Path.cwd())
    if state.cwd not in sys.path:
        sys.path.append(state.cwd)
    ctx_state.set(state)
    ctx_config.set(config)
    if Path("config.py").exists():
        hooks.own("util").exec_file(str(Path(state.cwd, "config.py")))
    data = _configure(config, connection)
    data |= overrides_by_key(invocation.overrides)
    inventory = hooks.own("inventory").make_inventory(
        invocation.inventory, cwd=state.cwd, override_data=data
    )
    ctx_inventory.set(inventory)
    chosen = _chosen(inventory, invocation.limit)
    names = None if chosen is None else [host.name for host in chosen]
    run = site.plan(inventory, names, invocation, broken)
    state.init(inventory, config, initial_limit=chosen)
    site.ready(state, planned=True)
    inventory.state.add_callback_handler(Progress(notice))
    return Session(run, inventory, notice)


def _configure(config: Config, connection: dict[str, Any]) -> dict[str, Any]:
    """Set pyinfra's configuration from the options, and return the options for the hosts' data."""
    if connection.pop("same_sudo_password", False):
        config.SUDO_PASSWORD = getpass("sudo password: ")
    data = {name: connection[name] for name in _DATA if name in connection}
    if connection.pop("ssh_password_prompt", False):
        data["ssh_password"] = getpass("SSH password: ")
    for name, value in connection.items():
        program = name.removesuffix("_user")
        # As in pyinfra, a user for sudo or dzdo needs --sudo or --dzdo.
        if name not in _DATA and (program not in ("sudo", "dzdo") or program in connection):
            setattr(config, _RENAMED.get(name, name.upper()), value)
    return data


def _chosen(inventory: Inventory, limit: tuple[str, ...]) -> list[Host] | None:
    """Return the hosts of ``--limit``; None for all hosts, since pyinfra has no group ``all``."""
    if not limit or "all" in limit:
        return None
    return [inventory.get_host(chosen.name) for chosen in limited(site.named(inventory), limit)]


def _set_output(*, shown: bool, frames: bool) -> None:
    """Make pyinfra print as its command line does, or print nothing."""
    pyinfra.is_cli = True  # affects only the output, as in pyinfra's own command line
    set_formatter(click.style)
    set_echo(click.echo)
    atexit.register(gc.freeze)  # saves a collection of all objects at exit: 250 ms
    for name in ("pyinfra", "paramiko"):
        log = logging.getLogger(name)
        log.handlers.clear()
        log.addHandler(logging.NullHandler())
        log.propagate = False
    if shown:
        hooks.own("log").setup_logging(logging.INFO)
        if not frames:
            hooks.hide_frames()
    else:
        os.environ["PYINFRA_PROGRESS"] = "off"
