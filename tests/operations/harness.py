"""An operation without a host: an observation goes in, commands and words come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pyinfra.api.command import FunctionCommand
from pyinfra.connectors.util import CommandOutput, OutputLine
from pyinfra.context import ctx_host, ctx_state

from sparkwright.facts.memory import HostMemory, memory
from sparkwright.host.contracts.observation import Observation, ObservationRequest
from sparkwright.host.contracts.records import encode


@dataclass
class FakeHost:
    """A host that answers questions from a table, and remembers what it was asked.

    Attributes:
        answers: program (the label in process lists) -> its answer, or what makes one of a request.
        asked: program and request of every remote execution.
        noops, lines: what operations say.
    """

    name: str = "spark-1"
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    noops: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    connector_data: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    data: dict[str, Any] = field(default_factory=dict)
    connector: Any = field(default_factory=lambda: SimpleNamespace(disconnect=lambda: None))

    def noop(self, words: str) -> None:
        self.noops.append(words)

    def log(self, words: str) -> None:
        self.lines.append(words)

    def get_fact(self, *_: Any, **__: Any) -> None:
        """Nothing is asked in vain."""

    def run_shell_command(self, command: Any, **arguments: Any) -> tuple[bool, CommandOutput]:
        label = str(command.bits[-1])
        request = json.loads(arguments["_stdin"])["request"] if "_stdin" in arguments else None
        self.asked.append((label, request))
        answer = self.answers[label]
        found = answer(request) if callable(answer) else answer
        text = json.dumps(encode(found))
        return True, CommandOutput([OutputLine("stdout", text)])


@dataclass
class Ran:
    """What an operation did: its commands, and after ``execute`` whether all of them went well."""

    host: FakeHost
    commands: list[Any]
    well: bool = True

    @property
    def memory(self) -> HostMemory:
        """What is remembered of the host."""
        return memory(self.host)  # type: ignore[arg-type]


def fake(observation: Observation, request: ObservationRequest, **answers: Any) -> FakeHost:
    """A host that was observed; programs' answers by label, with _ for -."""
    host = FakeHost(answers={name.replace("_", "-"): one for name, one in answers.items()})
    host.state = SimpleNamespace(
        is_executing=False, config=SimpleNamespace(DIFF=False, SUDO_PASSWORD=None)
    )
    known = memory(host)  # type: ignore[arg-type]
    known.observation, known.asked = observation, request
    return host


def run(host: FakeHost, operation: Any, *args: Any, execute: bool = False, **kwargs: Any) -> Ran:
    """Run an operation's generator, and its commands when asked to."""
    host.state.is_executing = execute
    with ctx_state.use(host.state), ctx_host.use(host):
        commands = list(operation._inner(*args, **kwargs))
        well = True
        if execute:
            for command in commands:
                assert isinstance(command, FunctionCommand)
                well = bool(command.function(host.state, host, *command.args)) and well
    return Ran(host, commands, well)


def locked(request: Any) -> dict[str, Any]:
    """The lock's answer: it is ours."""
    return {"held": True, "last": None}


Question = Callable[[Any], Any]
Cases = Iterator[tuple[str, Any]]
