"""The examples of operations run unchanged, on pyinfra's own API."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.deploy import add_deploy, deploy
from pyinfra.api.state import State

from docs.generate.operations import operations
from sparkwright.facts.memory import memory
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.lock import LockAnswer
from sparkwright.site import desired
from tests.operations.emergencies import host, pyinfra
from tests.operations.real import host_of, real_state
from tests.unit.builders import ROOT, probe, resolution

ENTRIES = {entry.name: entry for entry in operations()}
DEPLOY = ROOT / "docs/examples/deploy.py"


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_the_example_runs_unchanged(name: str) -> None:
    state = real_state(observe=probe(), lock=LockAnswer(True), disk_usage=DiskUsage((), ()))

    @deploy("Example")
    def example() -> None:
        code = ENTRIES[name].example
        assert code, f"{name} has no example"
        exec(compile(code, f"<example of {name}>", "exec"), {})

    add_deploy(state, example)
    assert memory(host_of(state)).failure is None
    assert state.failed_hosts == set()
    assert len(state.op_meta) == 1


@pytest.fixture
def unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve tags and revisions without a server, and take the key from the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKWRIGHT_API_KEY", "sk-0123456789abcdef")
    monkeypatch.setattr(
        desired, "pinned", lambda planned: resolution(next(iter(planned.values())).plan)
    )


def _deployed(**changes: Any) -> State:
    state = real_state(observe=probe(**changes), lock=LockAnswer(True))

    @deploy("Example")
    def example() -> None:
        runpy.run_path(str(DEPLOY))

    add_deploy(state, example)
    return state


@pytest.mark.usefixtures("unasked")
def test_a_failed_check_stops_the_run_before_any_operation() -> None:
    assert len(DEPLOY.read_text().splitlines()) <= 20
    state = _deployed(docker=None)
    assert state.failed_hosts == {host_of(state)}
    assert "Docker daemon does not answer" in (memory(host_of(state)).failure or "")
    assert state.get_meta_for_host(host_of(state)).ops_change == 0


def test_a_dry_run_with_a_failing_check_exits_with_1_without_a_prompt(tmp_path: Path) -> None:
    hosts = [host("a", observe=probe(docker=None)), host("b")]
    (tmp_path / "inventory.py").write_text(f"hosts = {hosts!r}\n")
    text = "from sparkwright.operations import docker\ndocker.verify(name='Docker')\n"
    (tmp_path / "deploy.py").write_text(text)
    done = pyinfra(tmp_path, "--dry", "inventory.py", "deploy.py")
    assert done.returncode == 1
    assert "[@fake/a] docker: the Docker daemon does not answer" in done.stderr
    assert "continue?" not in done.stdout + done.stderr
