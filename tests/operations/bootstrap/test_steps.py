"""Bootstrap's steps by pyinfra itself: what is run on a bare host, and in which order."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyinfra.context import ctx_host, ctx_state

import roles.bootstrap
from sparkwright.bootstrap.sources import Repository
from sparkwright.bootstrap.steps import StepPlan
from sparkwright.findings.user_error import refusal
from sparkwright.host.lock import LockAnswer
from sparkwright.operations.bootstrap import steps
from sparkwright.run import bootstrap as looking
from sparkwright.run import state as state_of_run
from tests.operations.harness import fake, run
from tests.operations.real import host_of, on, real_state
from tests.operations.sites import host_run, spark
from tests.unit.bootstrap.states import UBUNTU, but, decided
from tests.unit.builders import probe

TOOLKIT = "nvidia-container-toolkit"
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"


def key(_: Repository) -> str:
    return KEY


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
        raise refusal("bootstrap_sources: x.key", "is the key A, not B", "ask")

    host = fake(probe())
    ran = run(host, steps.done, step=step, user="me", key=wrong, execute=True)
    assert not ran.well
    assert host.programs == []
    assert "is the key A, not B" in "\n".join(host.lines)
