"""Facts: captured answers become typed values (``facts/``), and all facts share one execution."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkwright import facts
from sparkwright import facts as views
from sparkwright.facts.asking import HostError
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observe_anew
from sparkwright.host.observe import ObservationRequest
from tests.operations.harness import as_json, marked
from tests.operations.real import INSTANT, executed, host_of, on, real_state, says
from tests.unit.builders import ROOT, probe

CAPTURES = Path(__file__).parent / "facts"
OBSERVE = "sparkwright-observe"


def test_captured_facts_pass_in_the_form_of_pyinfras_tests() -> None:
    folders = {folder.name: len(list(folder.iterdir())) for folder in CAPTURES.iterdir()}
    assert set(folders) == {name for name in vars(facts) if name[0].isupper()}
    arguments = ["-q", "-p", "no:cacheprovider", "tests/operations/captured_facts.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert f"{sum(folders.values())} passed" in done.stdout


def test_an_observation_needs_neither_input_nor_a_password() -> None:
    command = views.HostObservation().command(ports=[8000]).get_raw_value()
    program, tries = command.split(" ; ")
    assert tries == 'sudo -n "$@" || "$@"'
    assert program.startswith("set -- python3 -IS -c ")
    assert program.endswith(f" {OBSERVE}")
    assert len(command) < 100_000  # an argument has at most 128 KiB


# --- Through pyinfra itself -----------------------------------------------------------------------


def test_three_facts_share_one_execution() -> None:
    host = host_of(real_state(observe=probe()))
    with on(host):
        assert host.get_fact(views.NvidiaDriver) == "580.95.05"
        assert host.get_fact(views.Docker) == probe().docker
        assert host.get_fact(views.Gpus) == probe().gpu.gpus
        assert host.get_fact(views.HostObservation) == probe()
        assert views.observed(host) == probe()
    assert executed(host) == [OBSERVE]


def test_a_fact_with_arguments_extends_the_observation() -> None:
    host = host_of(real_state(observe=probe()))
    with on(host):
        host.get_fact(views.NvidiaDriver)
        host.get_fact(views.HostObservation, services_root="/srv/sw", images=["vllm:a"])
        assert memory(host).asked == ObservationRequest(
            services_root="/srv/sw", images=("vllm:a",)
        )  # fmt: skip
        host.get_fact(views.LockHolder, files=["/etc/x"])
    assert executed(host) == [OBSERVE] * 3
    # The answer to this narrower request does not replace the earlier, wider observation.
    assert memory(host).asked == ObservationRequest(services_root="/srv/sw", images=("vllm:a",))


def test_an_observation_without_sudo_is_repeated() -> None:
    """A pyinfra fact has no password for sudo; a sparkwright operation may have a password."""
    host = host_of(real_state(observe=probe(sudo="a password is required", docker=None)))
    with on(host):
        assert host.get_fact(views.Docker) is None
        says(host, "observe", probe())
        assert views.observed(host).docker is not None
    assert executed(host) == [OBSERVE] * 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Welcome to spark-1!", "no answer: the host's login ends before the program, or runs"),
        (marked("{}"), "not a valid answer: Observation: time is missing (is another version of"),
        ({"success": False, "stderr": "bash: python3: command not found"},
         "sparkwright-observe: bash: python3: command not found"),
    ],
)  # fmt: skip
def test_a_host_without_an_answer_fails_alone(answer: Any, message: str) -> None:
    state = real_state("a", "b", observe=probe())
    bad, good = host_of(state, "a"), host_of(state, "b")
    says(bad, "observe", answer)
    with on(bad), pytest.raises(HostError) as raised:
        observe_anew(bad, ObservationRequest())
    assert message in str(raised.value)
    assert memory(bad).observation is None
    with on(bad):
        assert (
            bad.get_fact(views.NvidiaDriver) is None
        )  # the default, as pyinfra returns it for a failed host
    assert state.failed_hosts == {bad}
    with on(good):
        assert good.get_fact(views.NvidiaDriver) == "580.95.05"
    assert state.active_hosts == {good}


def test_pyinfras_command_line_prints_facts_as_json(tmp_path: Path) -> None:
    data = {**INSTANT, "fake_responses": {OBSERVE: marked(json.dumps(as_json(probe())))}}
    (tmp_path / "inventory.py").write_text(f"hosts = [('@fake/a', {data!r})]\n")
    program = Path(sys.executable).with_name("pyinfra")
    for arguments, result in (
        (["sparkwright.facts.Docker"], as_json(probe().docker)),
        (["sparkwright.facts.HostObservation", "images=vllm:a"], as_json(probe())),
    ):
        done = subprocess.run(
            [str(program), "inventory.py", "fact", *arguments], cwd=tmp_path, check=False,
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = done.stdout + done.stderr
        assert json.loads(text[text.index("{") : text.rindex("}") + 1]) == {"@fake/a": result}
