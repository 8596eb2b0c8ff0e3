"""Keys of a running fleet: rotated under load without a failed request, revoked on every host."""

import pytest

from tests.fleet.proxy_clients import BALANCER, REPLICAS, deploy, status
from tests.fleet.site import MACHINES, Site, container, inside
from tests.fleet.traffic import Load

INVENTORY = "inventory/proxies.py"
PLACES = ((BALANCER, 8080), *((MACHINES[host].address, 8000) for host in ("spark-1", "rtx-1")))


def statuses(key: str) -> set[int]:
    """Status codes of requests with a key, at the address and at proxies of replicas."""
    return {status(address, port, "GET", "/v1/models", key) for address, port in PLACES}


def named(site: Site, name: str = "openclaw") -> str:
    """Current key of a client on the controller."""
    return (site.folder / ".sparkwright/keys" / name).read_text().strip()


@pytest.fixture
def clients(behind: Site) -> Site:
    """Four replicas behind one address, with two clients."""
    file = behind.folder / "group_data/all.py"
    if "\nkeys = " not in file.read_text():
        with file.open("a") as settings:
            settings.write('keys = {"openclaw": {}, "laptop": {}}\n')
    before = {host: container(host) for host in REPLICAS}
    deploy(behind)
    assert {host: container(host) for host in REPLICAS} == before, "a new key restarted a service"
    assert statuses(named(behind)) == statuses(named(behind, "laptop")) == {200}
    return behind


@pytest.mark.timeout(600)
def test_a_rotation_under_load_fails_no_request(clients: Site) -> None:
    old = named(clients)
    before = {host: container(host) for host in REPLICAS}
    with Load(BALANCER, 8080, old) as load:
        clients.sparkwright("key", "rotate", "--name", "openclaw", INVENTORY)
        new = named(clients)
        assert statuses(old) == statuses(new) == {200}
    assert load.faults == []
    assert load.served > 20
    with Load(BALANCER, 8080, new) as load:
        clients.sparkwright("key", "retire", "--name", "openclaw", INVENTORY)
    assert load.faults == []
    assert (statuses(old), statuses(new)) == ({401}, {200})
    assert {host: container(host) for host in REPLICAS} == before
    assert deploy(clients).changed == set()


@pytest.mark.timeout(600)
def test_a_rotation_includes_the_fleets_own_key(clients: Site) -> None:
    old = clients.key
    with Load(BALANCER, 8080, old) as load:
        clients.sparkwright("key", "rotate", INVENTORY)
    assert load.faults == []
    clients.sparkwright("key", "retire", INVENTORY)
    assert (statuses(old), statuses(clients.key)) == ({401}, {200})
    assert deploy(clients).changed == set()


def test_a_revoked_key_gets_no_answer_and_other_keys_get_answers(clients: Site) -> None:
    key = named(clients)
    text = clients.sparkwright("key", "revoke", "openclaw", INVENTORY)
    assert key not in text
    assert statuses(key) == {401}
    assert statuses(named(clients, "laptop")) == statuses(clients.key) == {200}
    deploy(clients)
    assert statuses(key) == {401}
    listed = clients.sparkwright("key", "list", INVENTORY)
    assert "revoked" in listed
    assert named(clients, "laptop") not in listed
    clients.sparkwright("key", "rotate", "--name", "openclaw", INVENTORY)
    assert named(clients) != key
    assert statuses(named(clients)) == {200}


def test_a_host_stores_names_and_no_client_key(clients: Site) -> None:
    keys = (clients.key, named(clients, "laptop"))
    statuses(keys[1])
    run = deploy(clients, "--diff", "-vvv")
    assert not any(key in run.output for key in keys)
    for host in (*REPLICAS, "hopper-1"):
        log = inside(host, "journalctl", "--no-pager", "-o", "cat", "-u", "sparkwright-gateway")
        places = "/opt /etc /tmp /var/tmp /home /run"
        result = [inside(host, "sh", "-c", f"grep -rlF -e {key} {places} 2>/dev/null || true")
                 for key in keys]  # fmt: skip
        assert result == ["", ""], host
        for text in (log, inside(host, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")):
            assert not any(key in text for key in keys)
        if host in ("spark-1", "rtx-1", "hopper-1"):
            assert "key=laptop" in log
    for host in REPLICAS:
        inspected = inside(host, "docker", "inspect", "sparkwright-qwen36")
        assert not any(key in inspected for key in keys)
        engine = inside(host, "cut", "-d", " ", "-f2", "/opt/sparkwright/gateway/engine.map")
        assert status(MACHINES[host].address, 8000, "GET", "/v1/models", engine) == 401
