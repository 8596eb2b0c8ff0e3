"""Faults between the steps of a switch: a host always ends with one complete release that answers.

At each step three hosts are held: then the controller is killed, spark-1 loses power, Docker is
restarted on spark-2, and rtx-1 loses its connection and the switching process.
"""

import json
import signal
import subprocess
from collections.abc import Iterator

import pytest

from lab import fleet, machines
from tests.fleet.bad_tags import NEW, rolling_fleet
from tests.fleet.site import GOOD, MACHINES, Site, answers, inside, release, ssh, until

PLACE = "/opt/sparkwright/state/switch"
STEPS = ("writing", "draining", "stopping", "switching", "starting", "proving", "reverting")


@pytest.fixture(scope="module")
def rolling(site: Site) -> Iterator[Site]:
    """Three hosts that serve, all of them canaries."""
    with rolling_fleet(site, canaries=3):
        yield site


def step(host: str) -> str:
    """Progress of a host's switch, from the host's journal."""
    text = inside(host, "sh", "-c", f"cat {PLACE}/progress.json 2>/dev/null || echo '{{}}'")
    return str(json.loads(text).get("step"))


def hold(name: str) -> None:
    for host in GOOD:
        inside(host, "sh", "-c", f"mkdir -p {PLACE}; rm -f {PLACE}/progress.json {PLACE}/hold-*")
        inside(host, "touch", f"{PLACE}/hold-{name}")


def release_hold(host: str) -> None:
    inside(host, "sh", "-c", f"rm -f {PLACE}/hold-*")


def assert_whole(host: str) -> None:
    """One container runs the release that `current` and the unit name, and answers."""
    home = "/opt/sparkwright/services/qwen36"
    current = ssh(host, f"sudo readlink {home}/current").rpartition("/")[2]
    assert release(host) == current
    ssh(host, f"sudo cmp {home}/releases/{current}/unit.service"
        " /etc/systemd/system/sparkwright-qwen36.service")  # fmt: skip
    assert ssh(host, "systemctl is-active sparkwright-qwen36") == "active"
    assert len(ssh(host, "docker ps -q").splitlines()) == 1
    assert ssh(host, f"sudo readlink {home}/good").rpartition("/")[2] == current


@pytest.mark.parametrize("held", STEPS)
@pytest.mark.timeout(400)
def test_after_a_fault_at_each_step_one_complete_release_runs(rolling: Site, held: str) -> None:
    hold(held)
    tag = '"lab-oom"' if held == "reverting" else NEW
    if release("spark-1") != release("rtx-1"):
        assert release("spark-1")
    run = rolling.start("--data", f"image_tag={tag}")
    until(lambda: all(step(host) == held for host in GOOD), f"all are {held}", 120)
    run.send_signal(signal.SIGKILL)
    run.wait()
    machines.cut_power(MACHINES["spark-1"])
    inside("spark-2", "systemctl", "restart", "docker")
    cable = ["ip", "link", "set", f"vb-{MACHINES['rtx-1'].machine}"]
    subprocess.run([*cable, "down"], check=True)
    inside("rtx-1", "systemctl", "kill", "--signal=SIGKILL", "sparkwright-switch")
    # spark-1 has no power, so its held step is released on its disk.
    upper = MACHINES["spark-1"].home / "upper" / PLACE.removeprefix("/")
    (upper / f"hold-{held}").unlink(missing_ok=True)
    for host in ("spark-2", "rtx-1"):
        release_hold(host)
    subprocess.run([*cable, "up"], check=True)
    fleet.up()
    for host in GOOD:
        until(lambda host=host: step(host) == "ended", f"{host} has ended", 120)
        assert_whole(host)
        assert answers(rolling, host)
    rolling.deploy(refused={"hopper-1"})
    for host in GOOD:
        assert_whole(host)
