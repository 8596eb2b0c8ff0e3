"""Runs report and repair hosts that are faulty, die, or are half deployed."""

import signal
import time

import pytest

from lab import fleet, machines
from tests.fleet.site import (
    GOOD,
    MACHINES,
    Site,
    bare,
    container,
    fingerprint,
    inside,
    ssh,
    units,
    until,
)


@pytest.mark.parametrize(
    ("mode", "message"),
    [("driver-dead", "couldn't communicate"), ("hang", "hangs"), ("none", "No devices were found")],
)
def test_a_silent_driver_fails_only_its_host(converged: Site, mode: str, message: str) -> None:
    converged.gpu("spark-2", mode)
    before = fingerprint("spark-2")
    run = converged.deploy("--limit", "sparks", refused={"spark-2"})
    assert message in run.output
    assert "refused by preflight: nvidia-driver" in run.output
    assert fingerprint("spark-2") == before
    assert run.host("spark-1")["services"][0]["smoke"]["failures"] == []


def test_a_missing_toolkit_is_reported_with_its_remedy(converged: Site) -> None:
    inside("spark-2", "mv", "/usr/bin/nvidia-ctk", "/root/")
    try:
        run = converged.deploy("--limit", "spark-2", refused={"spark-2"})
    finally:
        inside("spark-2", "mv", "/root/nvidia-ctk", "/usr/bin/")
    assert "apt install nvidia-container-toolkit" in run.output


def test_missing_sudo_is_reported_with_every_other_fault(converged: Site) -> None:
    inside("spark-2", "chmod", "000", "/etc/sudoers.d/spark")
    inside("spark-2", "mv", "/etc/sudoers.d/spark", "/root/")
    converged.gpu("spark-2", "driver-dead")
    try:
        run = converged.deploy("--limit", "spark-2", refused={"spark-2"})
    finally:
        inside("spark-2", "mv", "/root/spark", "/etc/sudoers.d/")
        inside("spark-2", "chmod", "440", "/etc/sudoers.d/spark")
    assert "refused by preflight: sudo, nvidia-driver" in run.output
    assert "NOPASSWD" in run.output


def test_an_unreachable_host_is_named_and_other_hosts_continue(converged: Site) -> None:
    machines.cut_power(MACHINES["rtx-1"])
    run = converged.deploy(refused={"rtx-1", "hopper-1"})
    assert "not reached" in run.output
    assert "rtx-1" in run.output
    assert run.host("spark-1")["services"][0]["smoke"]["failures"] == []


def test_a_host_with_another_program_on_the_port_is_refused(converged: Site) -> None:
    ssh("spark-2", "sudo systemd-run --quiet --unit=squatter python3 -m http.server 8009")
    converged.edit("group_data/sparks.py", "8000", "8009")
    try:
        run = converged.deploy("--limit", "spark-2", refused={"spark-2"})
    finally:
        ssh("spark-2", "sudo systemctl stop squatter")
    assert "port 8009 is taken by python3" in run.output


@pytest.mark.parametrize(
    "delay",
    [2.0, *(pytest.param(number, marks=pytest.mark.faults) for number in (0.6, 1.2, 3.0, 4.5))],
)
def test_the_next_run_repairs_the_remains_of_a_killed_controller(
    converged: Site, delay: float
) -> None:
    """Two bare hosts, on which the killed run leaves any part of its work."""
    for host in ("spark-1", "rtx-1"):
        bare(host)
    run = converged.start()
    time.sleep(delay)
    run.send_signal(signal.SIGKILL)
    run.wait()
    after = converged.deploy(refused={"hopper-1"})
    for host in GOOD:
        assert after.host(host)["services"][0]["smoke"]["failures"] == []
    again = converged.deploy(refused={"hopper-1"})
    assert again.changed == set()


def test_a_host_that_dies_in_the_middle_fails_alone(converged: Site) -> None:
    bare("rtx-1")
    kept = container("spark-1")
    run = converged.start()
    until(lambda: "sparkwright-fetch" in units("rtx-1"), "rtx-1 fetches", 30)
    machines.cut_power(MACHINES["rtx-1"])
    assert run.wait(timeout=180) == 1
    assert container("spark-1") == kept
    fleet.up()
    after = converged.deploy(refused={"hopper-1"})
    assert after.host("rtx-1")["services"][0]["smoke"]["failures"] == []


@pytest.mark.faults
def test_a_service_that_cannot_start_shows_its_journal_and_fails(converged: Site) -> None:
    converged.edit(
        "group_data/sparks.py",
        '"port": 8000,',
        '"port": 8000, "environment": {"FAKE_VLLM_FAULT": "oom"},',
    )
    bare("spark-1")  # no rollback is possible, and systemd keeps trying
    started = time.monotonic()
    run = converged.deploy("--limit", "spark-1", refused={"spark-1"})
    assert "the unit ended while starting: torch.OutOfMemoryError" in run.output
    assert "a restart does not fix it: weights, graphs and KV cache" in run.output
    assert "no proved release runs here now" in run.output
    assert time.monotonic() - started < 120  # the deploy waits for one start only
    until(lambda: _result("spark-1") in ("failed",), "systemd gives up", 60)


def test_a_wedged_engine_does_not_count_as_healthy(converged: Site) -> None:
    converged.edit(
        "group_data/sparks.py",
        '"port": 8000,',
        '"port": 8000, "environment": {"FAKE_VLLM_FAULT": "wedge"},',
    )
    converged.edit(
        "catalog/recipes/qwen36-35b-a3b-heretic-dflash.yaml",
        "first_answer_seconds: 120",
        "first_answer_seconds: 4",
    )
    run = converged.deploy("--limit", "spark-1", refused={"spark-1"})
    assert "the engine hangs" in run.output


def _result(host: str) -> str:
    shown = machines.inside(MACHINES[host], ["systemctl", "is-active", "sparkwright-qwen36"])
    return shown.stdout.strip()
