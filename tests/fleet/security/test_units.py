"""Units on a host, by that host's own systemd: each is closed, and runs so."""

from __future__ import annotations

import re

import pytest

from tests.fleet.site import Site, inside

HOST = "spark-1"
#: The most that `systemd-analyze security` may say; 2.0 for all others.
MOST = {"sparkwright-gateway.service": 3.0, "sparkwright-watch.service": 3.0}


def _units() -> list[str]:
    names = inside(HOST, "sh", "-c", "cd /etc/systemd/system; ls -d sparkwright-*.service")
    return names.split()


@pytest.mark.usefixtures("converged")
def test_every_unit_is_closed() -> None:
    units = _units()
    assert {"sparkwright-qwen36.service", "sparkwright-watch.service"} <= set(units)
    for unit in units:
        said = inside(HOST, "systemd-analyze", "security", "--no-pager", unit)
        match = re.search(r"Overall exposure level for \S+ ([\d.]+)", said)
        assert match, said
        assert float(match[1]) <= MOST.get(unit, 2.0), said


def test_the_watch_sees_docker_and_systemd_from_within(converged: Site) -> None:
    """A sandbox too narrow would not fail the unit: what it looks at would be gone."""
    inside(HOST, "systemctl", "start", "sparkwright-watch.service")
    seen = inside(HOST, "cat", "/opt/sparkwright/state/watch.json")
    assert '"active":"active"' in seen
    assert '"health":200' in seen
    assert '"drift":["' not in seen
    assert converged.deploy("--limit", HOST).changed == set()


@pytest.mark.usefixtures("converged")
def test_a_services_unit_can_neither_write_nor_reach_the_network() -> None:
    """Asked of the running process of Docker's command."""
    leader = inside(HOST, "systemctl", "show", "-P", "MainPID", "sparkwright-qwen36.service")
    status = inside(HOST, "cat", f"/proc/{leader}/status")
    assert re.search(r"CapEff:\s+0+\n", status)
    assert re.search(r"NoNewPrivs:\s+1\n", status)
    assert re.search(r"Seccomp:\s+2\n", status)
    inner = ["nsenter", f"--target={leader}", "--mount", "--net", "sh", "-c"]
    assert inside(HOST, *inner, "touch /usr/x 2>/dev/null || echo no") == "no"
    assert inside(HOST, *inner, "ls /sys/class/net").split() == ["lo"] or "host0" not in inside(
        HOST, *inner, "cat /proc/net/dev"
    )
