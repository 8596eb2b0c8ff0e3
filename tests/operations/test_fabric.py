"""Addresses of the fabric: a host that cannot have them is left as it is."""

from typing import Any

from sparkwright.run import fabric_addresses
from tests.operations.sites import site, spark
from tests.unit.checks.fabric.test_addresses import host as state_of_host


def test_a_host_without_a_cable_is_left_as_it_is() -> None:
    hosts = [spark(f"spark-{number}", fabric=state_of_host()) for number in (1, 2)]
    wanted = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}
    run = site(*hosts, fabric_addresses=wanted)
    host: Any = hosts[0]
    fabric_addresses.addresses(host, run.hosts["spark-1"], {})
    assert host.programs == ["fabric"]
    assert host.memory.failure == "refused: fabric-addresses"
    assert any("0 network devices" in line for line in host.lines)
