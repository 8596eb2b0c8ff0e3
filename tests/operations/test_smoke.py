"""Smoke tests: requests and their targets, texts of failures, and answers of a service to a
neighbour without the key.
"""

import pytest

from sparkwright.checks.smoke.outside import Entrance
from sparkwright.checks.smoke.result import Smoke
from sparkwright.findings.finding import Finding
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.operations import smoke
from tests.host.serving import free_port
from tests.operations.harness import fake, run
from tests.unit.builders import probe
from tests.unit.security.test_open_routes import HERE, server

CHAT, CODE = (
    SmokeRequest(name, f"{name}.service", HERE, port, "/s", ("m",), boot, 10)
    for name, port, boot in (("chat", 8000, 900), ("code", 8001, 60))
)
WELL = SmokeAnswer((CheckResult("health", True, 0.5),))


def test_no_request_is_sent_while_preparing_or_without_a_service() -> None:
    host = fake(probe())
    assert run(host, smoke.answers, (CHAT,)).commands == []
    assert run(host, smoke.answers, (), execute=True).commands == []
    assert host.asked == []
    assert host.noops == ["this host has no service"]


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine reaches the host directly."""
    monkeypatch.setattr(smoke, "_address", lambda _: HERE)


@pytest.mark.parametrize("answers", [{"/invocations": 200}, {}])
def test_an_open_route_fails_the_host_and_a_refusing_route_passes(answers: dict[str, int]) -> None:
    smokes: dict[str, Smoke] = {}
    host = fake(probe(), check={"chat": WELL})
    with server(answers) as (port, _):
        ran = run(host, smoke.answers, (CHAT,), entrances=[Entrance("chat", "*", port)],
                  judged=smokes.__setitem__, execute=True)  # fmt: skip
    arguments = "POST /invocations answers HTTP 200 without the key"
    assert (ran.well, arguments in str(ran.memory.failure)) == (not answers, bool(answers))
    assert (ran.memory.failure is None, len(ran.commands)) == (not answers, len(answers))
    assert (smokes["chat"].passed, smokes["chat"].total) == (1 if answers else 2, 2)
    assert host.programs == ["check"]  # all tests of a host are one remote execution


def test_an_address_without_services_is_tested_too() -> None:
    host = fake(probe())
    with server({}, others=200) as (port, _):
        ran = run(host, smoke.answers, (), entrances=[Entrance("the address q", "*", port)],
                  execute=True)  # fmt: skip
    assert (ran.memory.failure or "").startswith("the address q fails its smoke test: outside: ")
    assert host.programs == []


@pytest.mark.parametrize("connection", [None, ("127.0.0.1", "127.0.0.1")])
def test_a_jump_host_or_tunnel_is_reported_instead_of_an_outside_test(
    monkeypatch: pytest.MonkeyPatch, connection: tuple[str, str] | None
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(smoke, "addresses", lambda _: connection)
    host = fake(probe(), check={"chat": WELL})
    ran = run(host, smoke.answers, (CHAT,), entrances=[Entrance("chat", "*", 1)], execute=True)
    assert ran.memory.failure is None
    assert host.lines == [
        "chat was not tested from outside: this machine reaches the host through a tunnel or "
        "another host"
    ]


def test_a_port_closed_to_the_controller_is_a_finding_with_a_remedy() -> None:
    port = free_port()
    findings: list[Finding] = []
    host = fake(probe(), check={"chat": WELL})
    ran = run(host, smoke.answers, (CHAT,), entrances=[Entrance("chat", "*", port)],
              noticed=findings.append, execute=True)  # fmt: skip
    assert ran.memory.failure is None
    assert host.programs == ["check"]
    (finding,) = findings
    assert finding.id == "unreachable"
    assert "bootstrap spark-1 --step firewall" in finding.remedy
    assert f"TCP at {port}" in finding.remedy
    assert any("--step firewall" in line for line in host.lines)


@pytest.mark.parametrize(
    ("came", "bind", "asked"),
    [("::1", "*", HERE), ("::1", "0.0.0.0", HERE), ("::1", "::", "::1"), ("::1", "::1", "::1")],
)
def test_a_host_reached_by_ipv6_is_tested_at_its_listening_address(
    monkeypatch: pytest.MonkeyPatch, came: str, bind: str, asked: str
) -> None:
    monkeypatch.setattr(smoke, "_address", lambda _: came)
    monkeypatch.setattr(smoke, "addresses", lambda _: (came, came))
    seen = probe(addresses={"lo": [HERE, came], "eth0": ["10.0.0.1"]})
    port = free_port()
    host = fake(seen, check={"chat": WELL})
    entrance = Entrance("chat", bind, port)
    run(host, smoke.answers, (CHAT,), entrances=[entrance], execute=True)
    assert any(f"{asked}:{port} does not answer this machine" in line for line in host.lines)
