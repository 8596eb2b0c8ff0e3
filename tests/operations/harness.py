"""An operation without a host: an observation is the input, and commands and messages are the
output.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import click
from pyinfra.api.command import FunctionCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.util import CommandOutput, OutputLine
from pyinfra.context import ctx_host, ctx_state

from sparkwright.facts import programs
from sparkwright.facts.memory import HostMemory, memory
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.records import encode
from sparkwright.host.lock import LockAnswer, Owner
from sparkwright.host.observe import Observation, ObservationRequest

_PACKED = re.compile(r'b64decode\("([^"]+)"\)')
#: Owner of a lock: another run on another machine.
ANN = Owner("t0", "ann@laptop", "elsewhere", 1, since=820.0)


@dataclass(frozen=True)
class Said:
    """Output of a program that is not an answer; with ``bare``, the output has no marks."""

    out: str = ""
    err: str = ""
    ok: bool = True
    bare: bool = False


@dataclass(frozen=True)
class Asked:
    """One remote execution: the program, its request as JSON, and its way of running."""

    program: str
    request: Any
    text: str
    arguments: dict[str, Any]

    @property
    def hidden(self) -> bool:
        """Return whether the request travels by standard input: other users of the host see a
        command, compressed or not.
        """
        return "_stdin" in self.arguments and not _PACKED.search(self.text)


@dataclass(eq=False)
class FakeState:
    """The part of pyinfra's state that operations read."""

    is_executing: bool = False
    config: Any = field(default_factory=lambda: SimpleNamespace(DIFF=False, SUDO_PASSWORD=None))
    active_hosts: set[Any] = field(default_factory=set)
    failed_hosts: set[Any] = field(default_factory=set)
    callback_handlers: list[Any] = field(default_factory=list)
    ops_change: int = 0
    should_raise_failed_hosts: Any = None

    def get_meta_for_host(self, _: Any) -> FakeState:
        """Number of earlier operations that change the host."""
        return self

    def add_callback_handler(self, handler: Any) -> None:
        self.callback_handlers.append(handler)

    def fail_hosts(self, hosts: set[Any]) -> None:
        """Raise if no host is left, like pyinfra."""
        self.active_hosts -= hosts
        self.failed_hosts |= hosts
        if not self.active_hosts:
            raise PyinfraError("No hosts remaining!")


@dataclass(eq=False)
class FakeHost:
    """A host that answers programs' requests from a table, and records the requests.

    Attributes:
        answers: program -> its answer, a function of a request, or an exception to raise.
        noops, lines: messages of operations, without colours.
    """

    name: str = "spark-1"
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    noops: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    connector_data: dict[str, Any] = field(default_factory=dict)
    connector: Any = field(default_factory=SimpleNamespace)
    state: FakeState = field(default_factory=FakeState)
    data: dict[str, Any] = field(default_factory=dict)
    current_op_hash: str | None = None

    @property
    def memory(self) -> HostMemory:
        """The host's remembered data."""
        return memory(self)  # type: ignore[arg-type]

    @property
    def programs(self) -> list[str]:
        """Programs that were run, in order."""
        return [item.program for item in self.asked]

    def request(self, program: str) -> Any:
        """The only request to a program."""
        (result,) = [item.request for item in self.asked if item.program == program]
        return result

    def noop(self, message: str) -> None:
        self.noops.append(message)

    def log(self, message: str) -> None:
        self.lines.append(click.unstyle(message))

    def get_fact(self, *_: Any, **__: Any) -> None:
        """Return no fact, without a remote execution."""

    def run_shell_command(self, command: Any, **arguments: Any) -> tuple[bool, CommandOutput]:
        text = command.get_raw_value()
        label = re.search(r"sparkwright-([\w-]+)( ; sudo .*)?$", text)
        assert label is not None, f"no program of ours: {text[-80:]}"
        if "_stdin" in arguments:
            request = json.loads(arguments["_stdin"])["request"]
        else:
            packed = _PACKED.search(text)
            assert packed is not None
            request = json.loads(zlib.decompress(base64.b64decode(packed[1])))["request"]
        self.asked.append(Asked(label[1], request, text, arguments))
        answer = self.answers[label[1]]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        message = answer if isinstance(answer, Said) else Said(json.dumps(encode(answer)))
        printed = message.out if message.bare else marked(message.out)
        lines = [OutputLine("stdout", part) for part in printed.split("\n")]
        lines += [OutputLine("stderr", line) for line in message.err.splitlines()]
        return message.ok, CommandOutput(lines)


@dataclass
class Ran:
    """Commands of an operation, and after ``execute`` whether all of them succeeded."""

    host: FakeHost
    commands: list[Any]
    well: bool = True

    @property
    def memory(self) -> HostMemory:
        """The host's remembered data."""
        return self.host.memory


def fake(
    observation: Observation | None, request: ObservationRequest | None = None, **answers: Any
) -> FakeHost:
    """A host with an observation; programs' answers by name, with _ for -.

    Args:
        observation: None for a host that was not observed.
        request: the observation's request.
    """
    host = FakeHost(answers={"lock": held})
    host.answers |= {name.replace("_", "-"): item for name, item in answers.items()}
    host.state.active_hosts = {host, object()}
    if observation is not None:
        host.answers.setdefault("observe", observation)
        expected = host.memory
        expected.observation, expected.asked = observation, request or ObservationRequest()
    return host


def run(host: FakeHost, operation: Any, *args: Any, execute: bool = False, **kwargs: Any) -> Ran:
    """Run an operation's generator, and its commands on request."""
    host.state.is_executing = execute
    with ctx_state.use(host.state), ctx_host.use(host):
        commands = list(operation._inner(*args, **kwargs))
        well = True
        if execute:
            for command in commands:
                assert isinstance(command, FunctionCommand)
                well = bool(command.function(host.state, host, *command.args)) and well
    return Ran(host, commands, well)


def held(request: Any) -> LockAnswer:
    """The lock's answer: the run has the lock, and no other run took it since the observation."""
    return LockAnswer(request["take"] is not None)


def busy(request: Any) -> LockAnswer:
    """The lock's answer: Ann has had the lock for three minutes."""
    return LockAnswer(False, ANN, 1000.0)


def ended(request: Any) -> dict[str, JobStatus]:
    """The answer to watched jobs: every job has ended well."""
    return {job["unit"]: JobStatus(False, False) for job in request["watch"]}


def marked(answer: str) -> str:
    """An answer as a program prints it."""
    return f"\n{programs.BEGIN}\n{answer}\n{programs.END}"


def as_json(record: object) -> Any:
    """A record in its encoded form."""
    return json.loads(json.dumps(encode(record)))


@dataclass(frozen=True)
class Case:
    """A state of a host, an operation's arguments, and the result.

    Attributes:
        seen: differences of the observation from a fresh Spark's.
        arguments: arguments of the operation.
        noop: reason for no change; None with a change.
        would: messages about planned changes.
        asks: program and request of the questions after the lock is taken; None for any request.
        answers: answers of these programs.
        done: recorded changes; default: the planned changes.
    """

    id: str
    seen: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    noop: str | None = None
    would: tuple[str, ...] = ()
    asks: tuple[tuple[str, object | None], ...] = ()
    answers: dict[str, Any] = field(default_factory=dict)
    done: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.id


def check(operation: Any, case: Case, seen: Observation, request: ObservationRequest) -> None:
    """Check the result of a case: only observed, executed, and with another run's lock."""
    dry = run(fake(seen, request, **case.answers), operation, **case.arguments)
    if case.noop is not None:
        assert (dry.commands, dry.host.lines) == ([], [])
        assert dry.host.noops == [case.noop]
        assert dry.host.asked == []
        return
    assert dry.host.lines == [f"would {line}" for line in case.would]
    assert len(dry.commands) == 1
    assert (dry.host.noops, dry.host.programs) == ([], [])

    done = run(fake(seen, request, **case.answers), operation, execute=True, **case.arguments)
    assert done.well, done.host.lines
    assert done.host.programs == ["lock", *(program for program, _ in case.asks)]
    for program, record in case.asks:
        if record is not None:
            assert done.host.request(program) == as_json(record)
    expected = case.would if case.done is None else case.done
    assert tuple(done.memory.changes) == expected
    assert tuple(done.host.lines) == expected
    assert done.memory.failure is None

    taken = run(
        fake(seen, request, **{**case.answers, "lock": busy}),
        operation, execute=True, **case.arguments,
    )  # fmt: skip
    _refused(taken, ["lock"], "ann@laptop (for 3 min) is at work on this host: wait, or break")

    for failing in dict(case.asks):
        answers = {name.replace("_", "-"): each for name, each in case.answers.items()}
        broken = {**answers, failing: Said(err="it broke", ok=False)}
        lost = run(fake(seen, request, **broken), operation, execute=True, **case.arguments)
        _refused(lost, None, f"sparkwright-{failing}: it broke")


def _refused(ran: Ran, programs: Iterable[str] | None, why: str) -> None:
    assert not ran.well
    assert ran.memory.changes == []
    assert ran.memory.failure is not None
    assert ran.memory.failure.startswith(why)
    assert ran.host.lines[0] == ran.memory.failure
    if programs is not None:
        assert ran.host.programs == programs
