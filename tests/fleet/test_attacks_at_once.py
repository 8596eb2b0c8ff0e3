"""A neighbour attacks proxy, peer server and sleeping service for two minutes, all at once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet.security.test_peer_server import PORT, _process, _unit
from tests.fleet.security.test_tls import trusting
from tests.fleet.site import GOOD, MACHINES, Site, all_bare, bare, hub, inside, ssh
from tests.fleet.test_exclusive import ADDRESS, HOST, INVENTORY, PORTS, Evening
from tests.fleet.traffic import Load

ATTACKER, SECONDS = "hopper-1", 120
PROGRAM = Path(__file__).with_name("attacks.py")
SLEEPER = "writer"


@pytest.fixture(scope="module")
def attacked(site: Site) -> Iterator[Site]:
    """A service, another service that a request starts, and a peer server, by https."""
    all_bare(site)
    site.edit("group_data/all.py", '# tls = "own"', 'tls = "own"')
    site.deploy(refused={"hopper-1"}, deploy=site.only_fetching())
    woken = f'sparks[1][1]["services"]["{SLEEPER}"]["activate"] = "on-request"\n'
    Evening(site).deploy(woken, activation={"stay_seconds": 3600, "wait_seconds": 120})
    yield site
    names = [word for name in PORTS for word in ("--service", name)]
    site.sparkwright("remove", INVENTORY, "--limit", HOST, *names, "--yes")
    site.edit("group_data/all.py", 'tls = "own"', '# tls = "own"')
    hub("DELETE")
    for host in GOOD:
        bare(host)
    site.repair()


@pytest.mark.timeout(900)
def test_a_client_with_a_key_is_served_during_an_attack(attacked: Site) -> None:
    giver = next(host for host in GOOD if _unit(host))
    server = _process(giver)
    places = (f"{ADDRESS}:8000", f"{MACHINES[giver].address}:{PORT}", f"{ADDRESS}:{PORTS[SLEEPER]}")
    ssh(ATTACKER, f"cat > /tmp/attacks.py <<'END'\n{PROGRAM.read_text()}\nEND")
    command = ("python3", "/tmp/attacks.py", *places, str(SECONDS), attacked.key)
    context = trusting(attacked)
    with ThreadPoolExecutor(1) as pool, Load(ADDRESS, 8000, attacked.key, context=context) as load:
        counts = json.loads(pool.submit(inside, ATTACKER, *command).result(SECONDS + 120))
    assert load.faults == []
    assert load.served > 100
    assert load.longest < 30
    assert counts["half"] > 10_000
    assert counts["resets"] > 10_000
    assert counts["slow"] >= 64
    assert _process(giver) == server
    # systemd has restarted no unit, for instance after a kill at its memory limit.
    for unit in ("sparkwright-gateway", "sparkwright-wake"):
        assert inside(HOST, "systemctl", "show", "-P", "NRestarts", unit) == "0", unit
