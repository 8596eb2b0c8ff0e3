"""The examples of operations run as they stand, on pyinfra's own API."""

from __future__ import annotations

import pytest
from pyinfra.api.deploy import add_deploy, deploy

from docs.generate.operations import Entry, operations
from sparkwright.facts.memory import memory
from sparkwright.host.lock import LockAnswer
from tests.operations.real import host_of, real_state
from tests.unit.builders import probe

ENTRIES = {entry.name: entry for entry in operations()}
#: Operations whose example is missing, or does not run as it stands.
MISSING: set[str] = set()


def test_no_further_operation_is_without_an_example() -> None:
    assert {name for name, entry in ENTRIES.items() if not entry.example} <= MISSING


@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - MISSING))
def test_the_example_runs_as_it_stands(name: str) -> None:
    entry: Entry = ENTRIES[name]
    state = real_state(observe=probe(), lock=LockAnswer(True))

    @deploy("Example")
    def example() -> None:
        exec(compile(entry.example, f"<example of {name}>", "exec"), {})

    add_deploy(state, example)
    assert memory(host_of(state)).failure is None
    assert state.failed_hosts == set()
    assert len(state.op_meta) == 1
