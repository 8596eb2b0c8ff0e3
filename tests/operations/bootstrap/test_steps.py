"""Bootstrap's steps by pyinfra itself: what is run on a bare host, and in which order."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_host, ctx_state

import roles.bootstrap
from sparkwright.bootstrap.sources import Repository
from sparkwright.bootstrap.steps import StepPlan
from sparkwright.facts import others
from sparkwright.facts.memory import memory
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.host.lock import LockAnswer
from sparkwright.operations.bootstrap import steps
from sparkwright.run import bootstrap as looking
from sparkwright.run import state as state_of_run
from tests.operations.harness import ANN, fake, run
from tests.operations.real import host_of, on, real_state
from tests.operations.sites import host_run, spark
from tests.unit.bootstrap.states import BOOKWORM, DGX, TRIXIE, UBUNTU, but, decided
from tests.unit.builders import probe

TOOLKIT = "nvidia-container-toolkit"
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"


def key(_: Repository) -> str:
    return KEY


def done(step: StepPlan, **responses: Any) -> tuple[list[str], Any]:
    """What is run on a host for a step, and the host."""
    state = real_state(lock=LockAnswer(True), prepare=[], **responses)
    others.follow(state)
    host = host_of(state)
    add_op(state, steps.done, name=f"Bootstrap: {step.name}", step=step, user="me", key=key,
           _sudo=True, _sudo_password="")  # fmt: skip
    connector: Any = host.connector
    connector.executed_commands.clear()
    state.set_stage(StateStage.Execute)
    state.is_executing = True
    run_ops(state)
    return list(connector.executed_commands), host


def index(commands: list[str], words: str) -> int:
    """Where a command with these words stands; there is one."""
    (found,) = [at for at, one in enumerate(commands) if words in one]
    return found


def test_docker_of_the_distribution() -> None:
    (step,) = decided(UBUNTU, "docker").steps
    commands, host = done(step)
    order = ["sparkwright-lock", "sparkwright-prepare", "apt-get update", " install ",
             "enable docker.service"]  # fmt: skip
    at = [index(commands, one) for one in order]
    assert at == sorted(at)
    install = commands[index(commands, " install ")]
    assert "DEBIAN_FRONTEND=noninteractive apt-get -y" in install
    assert (
        "--no-install-recommends -o DPkg::Lock::Timeout=600 docker.io docker-compose-v2" in install
    )
    assert not [one for one in commands if "daemon.json" in one or "restart" in one]
    assert memory(host).changes == ["Bootstrap: docker"]
    assert memory(host).stale


@pytest.mark.parametrize("state", [BOOKWORM, TRIXIE])
def test_a_repository_comes_with_its_key_first(state: Any) -> None:
    step = decided(state, TOOLKIT, "docker").steps[-1]
    assert step.name == TOOLKIT
    state = real_state(lock=LockAnswer(True), prepare=[])
    host = host_of(state)
    uploaded: list[tuple[str, str]] = []

    def upload(_: Any, file: Any, place: str, **__: Any) -> bool:
        uploaded.append((place, file.read() if hasattr(file, "read") else str(file)))
        return True

    connector: Any = host.connector
    connector.put_file = lambda file, place, **rest: upload(host, file, place, **rest)
    add_op(state, steps.done, step=step, user="me", key=key, _sudo=True, _sudo_password="")
    state.set_stage(StateStage.Execute)
    state.is_executing = True
    run_ops(state)
    commands = list(connector.executed_commands)
    assert [text for _, text in uploaded] == [KEY, step.repository and step.repository.text]
    assert index(commands, "apt-get update") < index(commands, " install ")
    assert index(commands, " install ") < index(commands, "start docker.service")


def test_the_role_has_everything_done_as_root_without_a_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever pyinfra was given: it would put a password into a command line."""
    state = real_state()
    state.config.SUDO_PASSWORD = "a secret"
    host = host_of(state)
    one = host_run(spark(), bootstrap=["docker", "docker-group"])
    found = decided(UBUNTU, "docker", "docker-group")
    monkeypatch.setattr(state_of_run, "host_run", lambda _: one)
    monkeypatch.setattr(looking, "decided", lambda *_: (UBUNTU, found))
    with on(host):
        roles.bootstrap.bootstrap()
    arguments = [data.global_arguments for data in state.ops[host].values()]
    assert [(one["_sudo"], one["_sudo_password"]) for one in arguments] == [(True, "")] * 2
    names = [name for one in state.op_meta.values() for name in one.names]
    assert names == ["Bootstrap: docker", "Bootstrap: docker-group"]


def test_nothing_is_asked_of_a_host_whose_settings_name_no_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is anything of it imported: a run with nothing to do stays as quick."""
    host = fake(probe())
    one = host_run(spark())
    monkeypatch.setattr(state_of_run, "host_run", lambda _: one)
    monkeypatch.setitem(sys.modules, "sparkwright.operations.bootstrap", None)
    with ctx_state.use(host.state), ctx_host.use(host):
        roles.bootstrap.bootstrap()
    assert host.programs == []


def test_group_units_and_commands() -> None:
    (step,) = decided(UBUNTU, "docker-group").steps
    commands, _ = done(step, **{"passwd": ""})
    assert [one for one in commands if "docker" in one and "me" in one]
    (step,) = decided(DGX, "clocks").steps
    commands, _ = done(step)
    reload = index(commands, "daemon-reload")
    assert reload < index(commands, "enable gpu-clocks.service")
    swap = but(DGX, swap=1 << 30, swappiness=60)
    (step,) = decided(swap, "swap").steps
    commands, _ = done(step)
    assert "sysctl --load /etc/sysctl.d/90-sparkwright-swap.conf" in commands[-1]


def _prepared(step: StepPlan, **answers: Any) -> Any:
    host = fake(probe(), **{"prepare": [], **answers})
    host.state.is_executing = True
    with ctx_state.use(host.state), ctx_host.use(host):
        commands = steps.done._inner(step=step, user="me", key=key)
        first: Any = next(commands)
        well = first.function(host.state, host, *first.args)
        commands.close()
    return host, well


def test_how_it_is_undone_is_recorded_before_anything_is_changed() -> None:
    step = decided(but(UBUNTU, packages=("docker.io",)), "docker", TOOLKIT).steps[-1]
    host, well = _prepared(step)
    assert well
    assert host.programs == ["lock", "prepare"]
    request = host.request("prepare")
    assert (request["step"], request["apt"], request["sudoers"]) == (TOOLKIT, True, None)
    assert request["undo"]["packages"] == [TOOLKIT]
    assert step.repository is not None
    assert set(request["undo"]["files"]) == {step.repository.key_file, step.repository.list_file}
    assert host.memory.stale


def test_sudoers_goes_by_our_own_program_with_the_password_on_standard_input() -> None:
    (step,) = decided(but(UBUNTU, passwordless=False), "sudoers").steps
    host = fake(probe(), prepare=("wrote /etc/sudoers.d/sparkwright-me",))
    host.state.config.SUDO_PASSWORD = "a secret"
    host.answers["lock"] = LockAnswer(True)
    seen: list[tuple[str, dict[str, Any]]] = []
    answer = host.run_shell_command

    def note(command: Any, **arguments: Any) -> Any:
        seen.append((command.get_raw_value(), dict(arguments)))
        arguments["_stdin"] = arguments["_stdin"].partition("\n")[2]
        return answer(command, **arguments)

    host.run_shell_command = note  # type: ignore[method-assign]
    ran = run(host, steps.done, step=step, user="me", execute=True)
    assert ran.well, host.lines
    assert host.request("prepare")["sudoers"] == list(step.sudoers or ())
    assert ran.memory.changes == ["wrote /etc/sudoers.d/sparkwright-me"]
    for text, arguments in seen:
        assert "a secret" not in text
        assert arguments["_stdin"].startswith("a secret\n")
        assert "_sudo_password" not in arguments


def test_what_would_be_done_is_told_and_nothing_is_asked() -> None:
    (step,) = decided(UBUNTU, TOOLKIT).steps

    def never(_: Repository) -> str:
        raise AssertionError("a key was fetched to look only")

    host = fake(probe())
    with ctx_state.use(host.state), ctx_host.use(host):
        next(steps.done._inner(step=step, user="me", key=never))
    assert host.lines == [f"would {line}" for line in step.would]
    assert host.programs == []


def test_a_key_that_is_wrong_changes_nothing_and_fails_that_host_alone() -> None:
    (step,) = decided(UBUNTU, TOOLKIT).steps

    def wrong(_: Repository) -> str:
        raise UserError([mistake("bootstrap_sources: x.key", "is the key A, not B", "ask")])

    host = fake(probe())
    ran = run(host, steps.done, step=step, user="me", key=wrong, execute=True)
    assert not ran.well
    assert host.programs == []
    assert "is the key A, not B" in "\n".join(host.lines)


def test_another_run_is_not_disturbed() -> None:
    (step,) = decided(UBUNTU, "docker").steps
    host, well = _prepared(step, lock=LockAnswer(False, ANN, 1000.0))
    assert not well
    assert host.programs == ["lock"]
    assert "ann@laptop" in (host.memory.failure or "")
