"""Units on a host, judged by the host's systemd: each unit is sandboxed, and still works."""

import json
import re

import pytest

from tests.fleet.site import Site, inside

HOST = "spark-1"
#: Highest exposure by `systemd-analyze security`; the limit of all other units is 2.0.
MOST = {"sparkwright-gateway.service": 3.0, "sparkwright-watch.service": 3.0}


def _units() -> list[str]:
    names = inside(HOST, "sh", "-c", "cd /etc/systemd/system; ls -d sparkwright-*.service")
    return names.split()


@pytest.mark.usefixtures("converged")
def test_every_unit_is_sandboxed() -> None:
    units = _units()
    assert {"sparkwright-qwen36.service", "sparkwright-watch.service"} <= set(units)
    for unit in units:
        text = inside(HOST, "systemd-analyze", "security", "--no-pager", unit)
        match = re.search(r"Overall exposure level for \S+ ([\d.]+)", text)
        assert match, text
        assert float(match[1]) <= MOST.get(unit, 2.0), text


def test_the_sandboxed_watch_reads_docker_and_systemd(converged: Site) -> None:
    """In a sandbox that is too narrow, the unit would succeed without its observations."""
    inside(HOST, "systemctl", "start", "sparkwright-watch.service")
    state = json.loads(inside(HOST, "cat", "/opt/sparkwright/state/watch.json"))
    seen = state["ring"][-1]["services"]["qwen36"]
    assert (seen["active"], seen["health"], seen["drift"]) == ("active", 200, [])
    assert converged.deploy("--limit", HOST).changed == set()


@pytest.mark.usefixtures("converged")
def test_a_services_unit_can_neither_write_nor_reach_the_network() -> None:
    """The kernel's status of Docker's running command shows its rights."""
    leader = inside(HOST, "systemctl", "show", "-P", "MainPID", "sparkwright-qwen36.service")
    status = inside(HOST, "cat", f"/proc/{leader}/status")
    assert re.search(r"CapEff:\s+0+\n", status)
    assert re.search(r"NoNewPrivs:\s+1\n", status)
    assert re.search(r"Seccomp:\s+2\n", status)
    into = ["nsenter", f"--target={leader}"]
    assert inside(HOST, *into, "--mount", "sh", "-c", "touch /usr/x 2>/dev/null || echo no") == "no"
    interfaces = inside(HOST, *into, "--net", "cat", "/proc/self/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
