"""One address in front of four replicas: clients notice no roll-out, and no request passes without
a key.
"""

import http.client
import json
from pathlib import Path

import pytest

from tests.fleet.bad_tags import NEW
from tests.fleet.proxy_clients import BALANCER, REPLICAS, deploy, status
from tests.fleet.site import MACHINES, Site, release, until
from tests.fleet.traffic import Load

ROUTES = Path(__file__).parents[1] / "fixtures/vllm/0.24.0/routes.txt"


def _models(key: str) -> dict[str, str]:
    """Models that a key may use, with the state of each."""
    connection = http.client.HTTPConnection(BALANCER, 8080, timeout=10)
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})
    return {item["id"]: item["state"] for item in json.load(connection.getresponse())["data"]}


def test_four_replicas_serve_behind_one_address(behind: Site) -> None:
    # HAProxy counts a server after two good checks; the address is deployed beside its replicas.
    until(lambda: _models(behind.key)["qwen36-fast"] == "ready", "the replicas are up")
    assert status(BALANCER, 8080, "POST", "/v1/completions", behind.key, '{"model": "none"}') == 404
    assert status(BALANCER, 8080, "GET", "/v1/models") == 401
    assert status(BALANCER, 8080, "GET", "/v1/models", behind.key) == 200
    assert deploy(behind).changed == set()


def test_no_route_of_vllm_is_open_without_the_key(behind: Site) -> None:
    """Send requests from the LAN, one by one, to the address and to the proxies of the replicas."""
    lines = ROUTES.read_text().splitlines()
    routes = [line.split() for line in lines if not line.startswith("#")]
    assert len(routes) > 50
    places = [(BALANCER, 8080), *((MACHINES[host].address, 8000) for host in REPLICAS)]
    for address, port in places:
        for method, path in routes:
            seen = status(address, port, method, path.replace("{", "").replace("}", ""))
            if (method, path) != ("GET", "/health"):
                assert seen in (401, 404, 405), (address, method, path, seen)


@pytest.mark.timeout(600)
def test_a_rollout_loses_no_request(behind: Site) -> None:
    before = {host: release(host) for host in REPLICAS}
    with Load(BALANCER, 8080, behind.key) as load:
        deploy(behind, "--data", f"image_tag={NEW}")
    assert all(release(host) != before[host] for host in REPLICAS)
    assert load.faults == []
    assert load.served > 100


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tag", ["lab-never-healthy", "lab-wedge", "lab-crash", "lab-oom"])
def test_a_bad_rollout_loses_no_request(behind: Site, tag: str) -> None:
    before = {host: release(host) for host in REPLICAS}
    with Load(BALANCER, 8080, behind.key) as load:
        run = deploy(behind, "--data", f'image_tag="{tag}"', code=1)
    assert {host: release(host) for host in REPLICAS} == before
    assert load.faults == []
    assert load.served > 50
    assert " failed: " in run.output
