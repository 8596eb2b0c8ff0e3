"""Common behaviour of operations: messages of a dry run, one command, one message of a failure."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.command import StringCommand
from pyinfra.context import ctx_host, ctx_state

from sparkwright.facts.asking import HostError, Sudo, execute
from sparkwright.findings.finding import Finding, Severity
from sparkwright.operations import docker, files
from sparkwright.operations.lib import changing
from tests.operations.harness import Ran, fake, run
from tests.tables import Tables
from tests.unit.builders import probe

cases = Tables(__file__)

BAD = Finding("driver", Severity.ERROR, observed="none", expected="one")
WARNING = Finding("slow", Severity.WARNING, observed="slow")


def _run(operation: Any, *args: Any, execute: bool = False, **kwargs: Any) -> Ran:
    return run(fake(probe()), SimpleNamespace(_inner=operation), *args, execute=execute, **kwargs)


def test_a_failure_of_several_lines_is_printed_whole_and_recorded_by_its_first_line() -> None:
    def act(_: Any) -> list[str]:
        raise HostError("first\n    second")

    ran = _run(changing.change, ["a"], act, execute=True)
    assert not ran.well
    assert ran.host.lines == ["first", "    second"]
    assert ran.memory.failure == "first"


def test_a_host_that_does_not_answer_while_it_is_compared_fails_alone() -> None:
    """pyinfra would end the run for all hosts with a traceback."""
    host = fake(None, observe=OSError("Socket is closed"))
    ran = run(host, docker.verify)
    lost = "sparkwright-observe: the connection is lost (Socket is closed)"
    assert (host.lines, len(ran.commands)) == ([lost], 1)
    host = fake(None, observe=OSError("Socket is closed"))
    ran = run(host, docker.verify, execute=True)
    assert (ran.well, ran.memory.failure, host.lines) == (False, lost, [lost])


def test_a_verified_host_reports_warnings_and_fails_for_errors() -> None:
    ran = _run(changing.verified, [WARNING], "fine")
    assert ran.host.noops == ["fine"]
    assert ran.host.lines[0] == "warning: slow"
    ran = _run(changing.verified, [WARNING, BAD], "fine", execute=True)
    assert not ran.well
    assert ran.host.noops == []
    assert ran.memory.failure == "driver: none, needed: one"


def test_a_check_runs_only_after_all_earlier_operations() -> None:
    looks: list[bool] = []

    def inspect(of: Any) -> list[str]:
        looks.append(of.state.is_executing)
        return []

    assert _run(changing.look, inspect).commands == []
    assert _run(changing.look, inspect, execute=True).commands == []
    assert looks == [True]

    def lost(_: Any) -> list[str]:
        raise HostError("the connection is lost")

    ran = _run(changing.look, lost, execute=True)
    assert not ran.well
    assert ran.memory.failure == "the connection is lost"


@cases("before", "after", "lines")
def test_a_diff_shows_each_changed_file(before: str | None, after: str, lines: list[str]) -> None:
    host = fake(probe())
    with ctx_state.use(host.state), ctx_host.use(host):
        files.show_diff("/f", before, after)
        assert host.lines == []
        host.state.config.DIFF = True
        files.show_diff("/f", before, after)
    assert host.lines == lines


@pytest.mark.parametrize("sudo", [Sudo.NEEDED, Sudo.IF_POSSIBLE])
@pytest.mark.parametrize(("user", "becomes"), [("root", False), ("ann", True)])
def test_root_needs_no_sudo(sudo: Sudo, user: str, becomes: bool) -> None:
    """Debian's minimal installation has no sudo."""
    host = fake(probe())
    transport = SimpleNamespace(get_username=lambda: user)
    host.connector.client = SimpleNamespace(get_transport=lambda: transport)
    commands: list[str] = []

    def shell(command: Any, **arguments: Any) -> Any:
        commands.append(f"{command.get_raw_value()} {arguments}")
        return True, SimpleNamespace(stdout_lines=[], stderr_lines=[])

    host.run_shell_command = shell  # type: ignore[method-assign]
    execute(host, "l", StringCommand("true"), sudo, 7)  # type: ignore[arg-type]
    assert ("sudo" in commands[0]) is becomes
