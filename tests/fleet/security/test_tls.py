"""TLS on the virtual fleet: turned on, used by clients and the fleet's address, and turned off."""

import http.client
import ssl
from collections.abc import Iterator

import pytest

from tests.fleet.bad_tags import NEW
from tests.fleet.proxy_clients import BALANCER, REPLICAS, deploy, status
from tests.fleet.site import MACHINES, Site, inside, ssh
from tests.fleet.traffic import Load

PEM = "/opt/sparkwright/gateway/tls/host.pem"
PLACES = [(BALANCER, 8080), *((MACHINES[host].address, 8000) for host in ("spark-1", "rtx-1"))]


@pytest.fixture(scope="module")
def secured(behind: Site) -> Iterator[Site]:
    """Fleet with TLS, which the settings turn off at the end."""
    assert status(BALANCER, 8080, "GET", "/v1/models", behind.key) == 200
    behind.edit("group_data/all.py", '# tls = "own"', 'tls = "own"')
    try:
        assert deploy(behind).changed == {*REPLICAS, "hopper-1"}
        yield behind
    finally:
        behind.edit("group_data/all.py", 'tls = "own"', '# tls = "own"')
        deploy(behind)
        for address, port in PLACES:
            assert status(address, port, "GET", "/v1/models", behind.key) == 200
        assert ssh("spark-1", f"sudo ls {PEM} 2>/dev/null || echo none") == "none"
        assert deploy(behind).changed == set()


def trusting(site: Site) -> ssl.SSLContext:
    """A client that imported the output of `sparkwright ca`."""
    pem = site.sparkwright("ca").partition("SHA-256")[0]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem)
    return context


def asked(address: str, port: int, context: ssl.SSLContext, key: str | None = None) -> int:
    connection = http.client.HTTPSConnection(address, port, timeout=10, context=context)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", "/v1/models", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_every_proxy_serves_only_https(secured: Site) -> None:
    context = trusting(secured)
    for address, port in PLACES:
        assert asked(address, port, context) == 401
        assert asked(address, port, context, secured.key) == 200
        with pytest.raises((http.client.HTTPException, OSError)):
            status(address, port, "GET", "/v1/models", secured.key)
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(address, port, ssl.create_default_context(), secured.key)


def test_a_second_deploy_takes_two_executions_and_changes_nothing(secured: Site) -> None:
    run = deploy(secured)
    assert run.changed == set()
    assert {run.host(host)["executions"] for host in REPLICAS} == {2}


def test_a_hosts_key_is_only_in_one_file_of_root(secured: Site) -> None:
    for host in REPLICAS:
        assert ssh(host, f"sudo stat -c '%a %U' {PEM}") == "600 root"
        line = ssh(host, f"sudo sed -n '/PRIVATE KEY/{{n;p;q}}' {PEM}")
        assert len(line) == 64
        # The command reads the pattern from the file, so that no argument contains the key.
        pattern = f"sudo sed -n '/PRIVATE KEY/{{n;p;q}}' {PEM}"
        result = ssh(host, f"{pattern} | sudo grep -rlF -f - /opt /etc /tmp /var/tmp /home || true")
        assert result == PEM
        assert line not in inside(host, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert line not in inside(host, "journalctl", "--no-pager", "-o", "cat")


@pytest.mark.timeout(900)
def test_a_rollout_over_https_loses_no_request(secured: Site) -> None:
    with Load(BALANCER, 8080, secured.key, context=trusting(secured)) as load:
        deploy(secured, "--data", f"image_tag={NEW}")
    assert load.faults == []
    assert load.served > 100
    deploy(secured)


def test_exported_settings_of_clients_name_the_ca(secured: Site) -> None:
    text = secured.sparkwright("endpoints", "inventory/proxies.py", "--format", "env")
    assert f"https://{BALANCER}:8080/v1" in text
    assert f"SSL_CERT_FILE={secured.folder}/.sparkwright/ca/ca.crt" in text
