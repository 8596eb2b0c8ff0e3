"""Hooks into pyinfra, each tested against the real pyinfra: replaced and unchanged behaviour; a
failed login fails only its host.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from pyinfra.api import util
from pyinfra.api.config import Config
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.inventory import Inventory
from pyinfra.api.operation import add_op
from pyinfra.api.state import State, StateStage
from pyinfra.connectors import ssh
from pyinfra.context import ctx_state
from pyinfra.facts.server import Arch, Command
from pyinfra.operations import server

from sparkwright.facts import hooks, others
from sparkwright.facts.asking import HostError
from sparkwright.facts.memory import memory
from sparkwright.host.lock import LockAnswer
from sparkwright.operations.lib import locks
from sparkwright.run import connections
from tests.operations.real import INSTANT, execute, executed, host_of, on, real_state
from tests.tables import Tables
from tests.unit.config.test_ssh_keys import key

ROOT = Path(__file__).resolve().parents[2]


_HOOKS = [hook for hook in vars(hooks).values() if inspect.isfunction(hook)
          and hook.__module__ == hooks.__name__ and hook.__name__[0] != "_"]  # fmt: skip


@pytest.mark.parametrize("hook", _HOOKS, ids=lambda hook: hook.__name__)
def test_a_hook_names_its_reason_and_a_figure_or_a_test(hook: Any) -> None:
    text = " ".join((hook.__doc__ or "").split())
    assert "Reason" in text
    worth = text.partition("Worth: ")[2].partition("Args:")[0]
    tests = re.findall(r"`(test_\w+)`", worth)
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert all(f"def {name}(" in sources for name in tests), tests
    assert tests or re.search(r"\d+ ms|round trip", worth)


_CONFIG = """
from sparkwright.facts import hooks
def plan(inventory, limit):
    print("plan", [host.name for host in inventory], hooks.command_line()["dry"])
hooks.before_connecting(plan, lambda state: print("ready"))
"""


def test_pyinfras_command_line_calls_the_plan_before_the_first_connection(tmp_path: Path) -> None:
    """The test runs pyinfra's program instead of its API, since the hook relies on this program."""
    (tmp_path / "config.py").write_text(_CONFIG)
    (tmp_path / "inventory.py").write_text(f"hosts = [('@fake/a', {INSTANT!r})]\n")
    (tmp_path / "deploy.py").write_text("")
    program = Path(sys.executable).with_name("pyinfra")
    done = subprocess.run(
        [str(program), "inventory.py", "deploy.py", "--dry"], cwd=tmp_path, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    order = [lines.index("plan ['@fake/a'] True"), lines.index("ready")]
    connected = next(n for n, line in enumerate(lines) if "Connected" in line)
    assert order == sorted(order)
    assert order[1] < connected


def test_a_fact_with_an_observed_value_is_not_queried() -> None:
    host = host_of(real_state())
    asked: list[Any] = []

    def answered(fact: type, arguments: dict[str, Any]) -> tuple[bool, Any]:
        asked.append((fact, arguments))
        return fact is Arch and "_sudo" not in arguments, "aarch64"

    hooks.share_facts(host, answered)
    connector: Any = host.connector
    with on(host):
        assert host.get_fact(Arch) == "aarch64"
        assert connector.executed_commands == []
        assert host.get_fact(Arch, _sudo=True) is None
        host.get_fact(Command, "true")  # pyinfra answers a fact with positional arguments
    assert len(connector.executed_commands) == 2
    assert asked == [(Arch, {}), (Arch, {"_sudo": True})]


def test_operations_run_in_pyinfras_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stock = (inspect.stack, inspect.getframeinfo)
    assert (util.stack, util.getframeinfo) == stock  # type: ignore[attr-defined]

    def orders() -> Any:
        state = real_state()

        def deploy() -> None:
            for n in range(2):
                add_op(state, server.shell, commands=[f"echo {n}"])
            add_op(state, server.shell, commands=["echo last"])

        deploy()
        deploy()
        names = [state.op_meta[item].args for item in state.get_op_order()]
        return names, sorted(meta.op_order for meta in state.op_meta.values())

    result = []
    for quick in (False, True):
        with monkeypatch.context() as patched:
            for name in ("stack", "getframeinfo"):
                patched.setattr(util, name, getattr(util, name))
            if quick:
                hooks.quick_operation_order()
                assert util.stack is not inspect.stack  # type: ignore[attr-defined]
            result.append(orders())
    assert result[0] == result[1]
    assert len(result[0][0]) == 6
    assert (util.stack, util.getframeinfo) == stock  # type: ignore[attr-defined]


class _Transport:
    """A connection whose channels open in turn."""

    def __init__(self) -> None:
        self.opened: list[Any] = []

    def open_session(self, *args: Any, **kwargs: Any) -> Any:
        self.opened.append((args, kwargs))
        if len(self.opened) == 3:
            raise EOFError
        return f"channel {len(self.opened)}"


def test_the_next_channel_is_opened_during_the_use_of_a_channel() -> None:
    transport = _Transport()
    hooks.keep_a_channel_open(transport)
    gevent.sleep(0)
    assert len(transport.opened) == 1
    assert transport.open_session() == "channel 1"
    gevent.sleep(0)
    assert len(transport.opened) == 2
    # The third channel can't be opened: only its user gets the error.
    assert transport.open_session() == "channel 2"
    with pytest.raises(EOFError):
        transport.open_session()
    assert transport.open_session() == "channel 4"
    assert transport.opened == [((), {})] * len(transport.opened)


def test_a_channel_with_arguments_is_opened_with_its_arguments() -> None:
    transport = _Transport()
    hooks.keep_a_channel_open(transport)
    transport.open_session(window_size=7)
    assert ((), {"window_size": 7}) in transport.opened


def _ssh_state(**data: Any) -> State:
    return State(Inventory(([("spark-1", data)], {})), Config())


def _connected_with(monkeypatch: pytest.MonkeyPatch, state: State) -> Any:
    """Arguments that paramiko gets when pyinfra connects, with sparkwright's tuning."""
    texts: list[Any] = []

    class Client:
        def connect(self, hostname: str, **arguments: Any) -> None:
            texts.append(arguments["_pyinfra_ssh_paramiko_connect_kwargs"])

        def get_transport(self) -> Any:
            return SimpleNamespace(sock=None)

    monkeypatch.setattr(ssh, "SSHClient", Client)
    state.add_callback_handler(connections.Connections())
    with ctx_state.use(state):
        connect_all(state)
    (result,) = texts
    return result


def test_connections_use_our_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _connected_with(monkeypatch, _ssh_state())
    assert result == {"transport_factory": connections._tuned}


def test_the_users_connection_settings_stay_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"banner_timeout": 9}
    result = _connected_with(monkeypatch, _ssh_state(ssh_paramiko_connect_kwargs=given))
    assert result == {"transport_factory": connections._tuned, "banner_timeout": 9}
    assert given == {"banner_timeout": 9}
    own = {"transport_factory": "mine"}
    result = _connected_with(monkeypatch, _ssh_state(ssh_paramiko_connect_kwargs=own))
    assert result == own


def test_an_unreachable_host_is_recorded_with_a_remedy() -> None:
    state = _ssh_state(ssh_hostname="127.0.0.1", ssh_port=9)
    state.add_callback_handler(connections.Connections())
    with ctx_state.use(state), pytest.raises(PyinfraError):
        connect_all(state)
    failure = memory(state.inventory.get_host("spark-1")).failure or ""
    assert failure.startswith("not reached: ")
    assert failure.endswith("(check that the host is on, try 'ssh spark-1', check ssh_ settings)")


def test_connections_count_executions_and_their_end_releases_the_lock() -> None:
    state = real_state(lock=LockAnswer(True))
    host = host_of(state)
    connections.Connections().host_connect(state, host)
    with on(host):
        host.run_shell_command("true")
        locks.take(host)
        assert (memory(host).executions, memory(host).locked) == (2, "/opt/sparkwright")
        disconnect_all(state)
    assert (memory(host).executions, memory(host).locked) == (3, None)
    assert executed(host) == ["true", "sparkwright-lock", "sparkwright-lock"]


def test_no_prompt_appears_when_a_host_fails() -> None:
    state = real_state("a", "b")
    state.config.FAIL_PERCENT = 0
    with pytest.raises(PyinfraError, match="Over 0%"):
        state.fail_hosts({host_of(state, "a")})
    state = real_state("a", "b")
    state.config.FAIL_PERCENT = 0
    hooks.never_ask_about_failed_hosts(state)
    state.fail_hosts({host_of(state, "a")})
    assert len(state.active_hosts) == 1


def test_a_host_that_failed_outside_of_an_operation_has_a_reason() -> None:
    state = real_state("a", "b")
    others.follow(state)
    host = host_of(state, "a")
    with on(host):
        hooks.leave_out(host)
        disconnect_all(state)
    assert memory(host).failure == "a fact failed: pyinfra's log names the fact"
    assert memory(host_of(state, "b")).failure is None


def test_a_guard_prevents_another_operation_from_running_a_command() -> None:
    state = real_state("a", "b")
    others.follow(state)
    host = host_of(state)

    def guard() -> None:
        raise HostError("ann@laptop is at work on this host: wait")

    memory(host).guard = guard
    add_op(state, server.shell, name="Touch", commands=["true"], host=host)
    execute(state)
    connector: Any = host.connector
    assert connector.executed_commands == []
    assert memory(host).failure == "ann@laptop is at work on this host: wait"
    assert (memory(host).changes, state.failed_hosts) == ([], {host})


@pytest.fixture
def _hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    connector: Any = ssh
    monkeypatch.setattr(connector, "get_private_key", connector.get_private_key)
    hooks.load_keys_with(connections.private_key)


def failures(**hosts: Any) -> dict[str, str | None]:
    """Reasons for missing connections, with one host that is always connected."""
    named = [(name, {"ssh_hostname": "127.0.0.1", **data}) for name, data in hosts.items()]
    state = State(Inventory(([("@fake/a", INSTANT), *named], {})), Config())
    with ctx_state.use(state):
        state.init(state.inventory, state.config)
        state.add_callback_handler(connections.Connections())
        state.set_stage(StateStage.Connect)
        connect_all(state)
    assert state.inventory.get_host("@fake/a").connected
    return {name: memory(state.inventory.get_host(name)).failure for name in hosts}


@pytest.mark.usefixtures("_hooked")
def test_an_unusable_key_fails_its_hosts_alone(tmp_path: Path) -> None:
    plain, locked = tmp_path / "plain", tmp_path / "locked"
    for folder in (plain, locked):
        folder.mkdir()
    good = key(plain, "-t", "ed25519")
    phrase = key(locked, "-t", "ed25519", phrase="open sesame")
    cut = tmp_path / "cut"
    text = Path(good).read_text().splitlines()
    cut.write_text("\n".join([text[0], text[1][:30], text[-1]]) + "\n")
    result = failures(
        missing={"ssh_key": f"{tmp_path}/none"},
        public={"ssh_key": f"{good}.pub"},
        folder={"ssh_key": str(tmp_path)},
        garbage={"ssh_key": __file__},
        cut={"ssh_key": str(cut)},
        encrypted={"ssh_key": phrase},
        other_phrase={"ssh_key": phrase, "ssh_key_password": "sesame"},
    )
    for name, arguments in Tables(__file__).data["keys"].items():
        message = str(result[name])
        assert message.startswith("not reached: ssh_key: ")
        assert arguments in message
        assert "sesame" not in message
        # The key's remedy does not claim that the host is off.
        assert "check that the host is on" not in message


@pytest.mark.usefixtures("_hooked")
def test_any_exception_of_a_connection_fails_its_host_alone() -> None:
    result = failures(unknown={"ssh_paramiko_connect_kwargs": {"nonsense": 1}})
    assert str(result["unknown"]).startswith("not reached: TypeError: ")
    assert "check that the host is on" in str(result["unknown"])


def test_a_terminal_prompts_for_the_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = key(tmp_path, "-t", "ed25519", phrase="open sesame")
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(connections, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    state = SimpleNamespace(private_keys={})
    loaded = connections.private_key(lambda *_, **given: given, state, path, None)
    assert loaded == {"key_filename": path, "key_password": None}
