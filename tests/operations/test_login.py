"""A login that can't be had fails its host alone, whatever is wrong with key or connection."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.config import Config
from pyinfra.api.connect import connect_all
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State, StateStage
from pyinfra.connectors import ssh
from pyinfra.context import ctx_state

from sparkwright.facts import hooks
from sparkwright.facts.memory import memory
from sparkwright.operations import connections
from sparkwright.operations.connections import Connections
from tests.operations.real import INSTANT
from tests.tables import Tables
from tests.unit.config.test_ssh_keys import key

TABLES = Tables(__file__)


@pytest.fixture
def _hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    connector: Any = ssh
    monkeypatch.setattr(connector, "get_private_key", connector.get_private_key)
    hooks.load_keys_with(connections.private_key)


def failures(**hosts: Any) -> dict[str, str | None]:
    """Why each host is not connected; beside them there is one that always is."""
    named = [(name, {"ssh_hostname": "127.0.0.1", **data}) for name, data in hosts.items()]
    state = State(Inventory(([("@fake/a", INSTANT), *named], {})), Config())
    with ctx_state.use(state):
        state.init(state.inventory, state.config)
        state.add_callback_handler(Connections())
        state.set_stage(StateStage.Connect)
        connect_all(state)
    assert state.inventory.get_host("@fake/a").connected
    return {name: memory(state.inventory.get_host(name)).failure for name in hosts}


@pytest.mark.usefixtures("_hooked")
def test_keys_that_nobody_can_log_in_with(tmp_path: Path) -> None:
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
    for name, arguments in TABLES.data["keys"].items():
        message = str(result[name])
        assert message.startswith("not reached: ssh_key: ")
        assert arguments in message
        assert "sesame" not in message
        # What the key's remedy is, is not that the host is off.
        assert "check that it is on" not in message


@pytest.mark.usefixtures("_hooked")
def test_whatever_a_connection_raises_fails_its_host_alone() -> None:
    result = failures(unknown={"ssh_paramiko_connect_kwargs": {"nonsense": 1}})
    assert str(result["unknown"]).startswith("not reached: TypeError: ")
    assert "check that it is on" in str(result["unknown"])


def test_who_sits_at_a_terminal_is_asked_for_the_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = key(tmp_path, "-t", "ed25519", phrase="open sesame")
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(connections, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    state = SimpleNamespace(private_keys={})
    loaded = connections.private_key(lambda *_, **given: given, state, path, None)
    assert loaded == {"key_filename": path, "key_password": None}
