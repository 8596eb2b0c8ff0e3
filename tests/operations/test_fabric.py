"""Addresses of the fabric by pyinfra itself: what is run on a host, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwright.host.fabric import FabricState
from sparkwright.host.lib.icmp import Ping
from sparkwright.operations.fabric import addresses
from sparkwright.run import fabric_addresses
from tests.operations.harness import fake, run
from tests.operations.sites import site, spark
from tests.unit.checks.fabric.test_addresses import host as state_of_host

TEXT = "network:\n  version: 2\n"
PINGS = [Ping("192.168.177.12", "enp1s0f1np1", 8972)]
WANTED = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}


def test_dry_shows_the_text_and_does_nothing() -> None:
    host = fake(None)
    host.state.config.DIFF = True
    done = run(host, addresses.proved, PINGS)
    assert done.host.lines == ["would ping 192.168.177.12 over enp1s0f1np1"]
    assert host.asked == []


def _role(monkeypatch: pytest.MonkeyPatch, state: FabricState) -> tuple[Any, list[Any]]:
    hosts = [spark("spark-1", fabric=state), spark("spark-2", fabric=state)]
    run = site(*hosts, fabric_addresses=WANTED)
    called: list[Any] = []
    monkeypatch.setattr(fabric_addresses, "connection", lambda _: ("192.168.1.5", "192.168.1.21"))
    for name in ("configured", "proved", "kept"):
        monkeypatch.setattr(addresses, name, lambda n=name, **rest: called.append((n, rest)))
    host: Any = hosts[0]
    fabric_addresses.addresses(host, run.hosts["spark-1"], {})
    return hosts[0], called


def test_a_host_gets_what_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    host, called = _role(monkeypatch, state_of_host(1))
    (name, given), (then, pings), (last, _) = called
    assert (name, then, last) == ("configured", "proved", "kept")
    assert given["devices"] == ["enp1s0f1np1", "enP2p1s0f1np1"]
    assert given["_sudo"] is True
    assert "addresses: [192.168.177.11/24]" in given["text"]
    assert len(pings["pings"]) == 2
    assert host.programs == ["fabric"]


def test_a_host_without_a_cable_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    host, called = _role(monkeypatch, state_of_host())
    assert called == []
    assert host.memory.failure == "refused: fabric-addresses"
    assert any("0 network devices" in line for line in host.lines)
