"""Real hosts of pyinfra with pyinfra's test connector, ``@fake``: no request leaves this process.

``harness.py`` invents a host's answers; here the real pyinfra runs, so that public and private
interfaces of pyinfra are tested.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra.api.config import Config
from pyinfra.api.connect import connect_all
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.operations import run_ops
from pyinfra.api.state import State, StateStage
from pyinfra.context import ctx_host, ctx_state

from sparkwright.host.lib.records import encode
from tests.operations.harness import marked

INSTANT = {"fake_delay": 0, "fake_delay_jitter": 0}


def real_state(*names: str, **responses: Any) -> State:
    """Connected hosts.

    Args:
        responses: program -> its answer for every host, with _ for -.
    """
    texts = {f"sparkwright-{key.replace('_', '-')}": _text(item) for key, item in responses.items()}
    data = {**INSTANT, "fake_responses": texts}
    hosts = [(f"@fake/{name}", dict(data)) for name in names or ("a",)]
    state = State(Inventory((hosts, {})), Config())
    with ctx_state.use(state):
        state.set_stage(StateStage.Connect)
        connect_all(state)
        state.set_stage(StateStage.Prepare)
    return state


def _text(answer: Any) -> Any:
    return answer if isinstance(answer, str | dict) else marked(json.dumps(encode(answer)))


def host_of(state: State, name: str = "a") -> Host:
    """A host by its name."""
    host = state.inventory.get_host(f"@fake/{name}")
    assert isinstance(host, Host)
    return host


def execute(state: State) -> None:
    """Run the operations of a state."""
    state.set_stage(StateStage.Execute)
    state.is_executing = True
    run_ops(state)


def executed(host: Host) -> list[str]:
    """The last word of every command that was run on a host: the label of a sparkwright program."""
    connector: Any = host.connector
    return [text.split(" ; sudo ")[0].rpartition(" ")[2] for text in connector.executed_commands]


def says(host: Host, program: str, answer: Any) -> None:
    """Make a program give another answer from now on."""
    connector: Any = host.connector
    connector.data["fake_responses"] = {
        **connector.data["fake_responses"], f"sparkwright-{program}": _text(answer),
    }  # fmt: skip


@contextmanager
def on(host: Host) -> Iterator[Host]:
    """pyinfra's context of a host, as within a deploy."""
    with ctx_state.use(host.state), ctx_host.use(host):
        yield host
