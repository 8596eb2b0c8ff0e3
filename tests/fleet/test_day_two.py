"""The day after a deploy: logs, a shell, stop, start, restart, and maintenance of a host."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.proxy_clients import status
from tests.fleet.site import ENGINE, Site, answers, container, ssh, until

HOST, ADDRESS = "spark-1", "10.213.77.11"
SITE = "inventory/virtual.py"
LIMIT = (SITE, "--limit", HOST)
UNIT = "sparkwright-qwen36.service"
#: The lock of a deploy that died on another machine.
LOCK = {"token": "dead", "by": "ann@elsewhere", "machine": "elsewhere", "pid": 1, "since": 1.0}


@pytest.fixture(scope="module")
def served(site: Site) -> Site:
    """A site with one host that serves as planned."""
    site.power_on()
    site.repair()
    site.deploy("--limit", HOST)
    return site


def _state() -> str:
    return ssh(HOST, f"systemctl is-active {UNIT} || true")


def _health() -> int:
    return status(ADDRESS, 8000, "GET", "/health")


def _follow(site: Site, folder: Path) -> subprocess.Popen[bytes]:
    arguments = ("logs", *LIMIT, "--follow", "--lines", "0", "--service", "qwen36")
    with folder.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "sparkwright", *arguments], cwd=site.folder,
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip


def test_a_stop_works_despite_a_dead_deploy_and_lasts_until_the_next_start(served: Site) -> None:
    held = json.dumps(json.dumps(LOCK))
    ssh(HOST, f"echo {held} | sudo tee /opt/sparkwright/state/lock.json >/dev/null")
    text = served.sparkwright("stop", *LIMIT, "--yes", "--why", "it is too loud")
    assert "spark-1: qwen36: stopped" in text
    assert (_state(), _health()) == ("inactive", 503)
    assert "it is too loud" in served.sparkwright("status", *LIMIT, code=1)
    # A command that is not an emergency waits for the lock.
    assert "ann@elsewhere" in served.sparkwright("start", *LIMIT, "--yes", code=1)
    run = served.deploy("--limit", HOST, "--data", "break_lock=True")
    assert run.changed == {HOST}
    assert "it is too loud, start" in run.output
    assert answers(served, HOST)
    assert served.deploy("--limit", HOST).changed == set()


def test_logs_follow_a_restart_and_a_shell_quotes_its_arguments(
    served: Site, tmp_path: Path
) -> None:
    before, path = container(HOST), tmp_path / "followed"
    following = _follow(served, path)
    try:
        text = served.sparkwright("restart", *LIMIT, "--service", "qwen36", "--yes")
        assert "spark-1: qwen36: answers after" in text
        until(lambda: "spark-1 qwen36: " in path.read_text(), "a line of the restart", 20)
    finally:
        following.terminate()
        following.wait(20)
    assert container(HOST) != before
    assert _health() == 200  # the proxy has added the service again
    shown = served.sparkwright("logs", *LIMIT, "--lines", "30", "--since", "1h")
    assert "spark-1 qwen36: " in shown
    problems = served.sparkwright("logs", *LIMIT, "--service", "qwen63", code=2)
    assert "did you mean 'qwen36'?" in problems
    arguments = ("sh", "-c", 'echo "$1"', "sh", "a  b; $(echo no)")
    inside = served.sparkwright("shell", SITE, "--host", HOST, "--", *arguments)
    assert inside == "a  b; $(echo no)\n"


def test_a_deploy_skips_a_host_until_its_maintenance_ends(served: Site) -> None:
    arguments = ("maintenance", SITE, HOST)
    text = served.sparkwright(*arguments, "on", "--why", "a new fan")
    assert "qwen36 has left every pool, and is drained" in text
    runs = container(HOST)
    assert (_state(), _health()) == ("active", 503)

    served.edit("group_data/sparks.py", '"port": 8000,', '"port": 8000, "boot_seconds": 99,')
    run = served.deploy("--limit", HOST)
    assert (run.changed, run.host(HOST)["refused"], container(HOST)) == (set(), None, runs)
    assert "a new fan: this run skips the host" in run.output
    served.edit("group_data/sparks.py", ' "boot_seconds": 99,', "")
    assert "a new fan" in served.sparkwright("status", *LIMIT)
    assert "warning: maintenance" in served.sparkwright("doctor", *LIMIT, code=1)

    # HAProxy has lost its state, as after a boot.
    ssh(HOST, f"sudo systemctl stop {UNIT}; sudo systemctl restart sparkwright-gateway")
    assert "stays in maintenance" in served.sparkwright(*arguments, "off", code=1)
    ssh(HOST, f"sudo systemctl start {UNIT}")
    until(_answers_itself, "the service", 60)
    assert _health() == 503
    assert "is back in its pools" in served.sparkwright(*arguments, "off")
    assert _health() == 200
    assert answers(served, HOST)
    assert ssh(HOST, "sudo ls /var/lib/sparkwright") == ""


def _answers_itself() -> bool:
    """Return whether vLLM is healthy, whatever its proxy answers."""
    return ssh(HOST, f"{ENGINE}/health -o /dev/null -w '%{{http_code}}' || true") == "200"
