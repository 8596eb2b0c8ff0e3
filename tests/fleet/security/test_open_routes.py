"""All ports and routes of a host that a neighbour on the LAN and the controller reach."""

import json
import re
from pathlib import Path

import pytest

from tests.fleet.proxy_clients import open_ports, status
from tests.fleet.site import ENGINE, GOOD, MACHINES, Site, ssh, until

FIXTURES = Path(__file__).parents[2] / "fixtures/vllm/0.24.0"
ROUTES = [
    tuple(line.split())
    for line in (FIXTURES / "routes.txt").read_text().splitlines()
    if not line.startswith("#")
]
SSH, PROXY, PEERS = 22, 8000, 18650
#: Routes that vLLM itself answers without the key.
OPEN = ("/invocations", "/tokenize", "/metrics", "/version", "/openapi.json")
ASK = {
    "/v1/completions": {"model": "qwen36-fast", "prompt": "1 2 3", "max_tokens": 2},
    "/tokenize": {"model": "qwen36-fast", "prompt": "1 2 3"},
}
#: Program that scans every port of a host, in Python without packages.
SCAN = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def taken(port):
    with socket.socket() as one:
        one.settimeout(2)
        return one.connect_ex((sys.argv[1], port)) == 0
with ThreadPoolExecutor(64) as pool:
    ports = range(1, 65536)
    print(*[port for port, there in zip(ports, pool.map(taken, ports)) if there])
"""


def _from_neighbour(host: str, address: str) -> set[int]:
    """A scan from another host of the fleet."""
    return {int(port) for port in ssh(host, f"python3 -c '{SCAN}' {address}").split()}


@pytest.fixture(scope="module")
def proxied(site: Site) -> Site:
    """The fleet with default settings."""
    site.power_on()
    site.repair()
    site.deploy(refused={"hopper-1"})
    return site


@pytest.mark.timeout(300)
def test_only_ssh_the_proxy_and_peers_take_connections(proxied: Site) -> None:
    address = MACHINES["spark-1"].address
    ssh("spark-1", "sudo systemctl stop 'sparkwright-share*' || true")
    for result in (open_ports(address), _from_neighbour("spark-2", address)):
        assert {SSH, PROXY} <= result
        assert result <= {SSH, PROXY, PEERS}, result
    # Inside the container the port exists: the scan had a target.
    ssh("spark-1", f"{ENGINE}/health -f -o /dev/null")


#: Program of a local user, which tries the engine's socket and the engine's port, and prints
#: successful attempts.
TAKE = """
import socket
for how in ("connect", "bind"):
    with socket.socket(socket.AF_UNIX) as one:
        try:
            getattr(one, how)("/run/sparkwright-engines/qwen36/http.sock")
            print(how)
        except OSError:
            pass
"""
#: Program on loopback ports that an engine and its health check could use. It answers every request
#: with success.
POSE = """
import http.server, sys
class Yes(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    do_POST = do_GET
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Yes).serve_forever()
"""


@pytest.mark.timeout(300)
def test_a_local_user_neither_reaches_nor_replaces_the_engine(proxied: Site) -> None:
    asked = ("POST", "/v1/completions", proxied.key, json.dumps(ASK["/v1/completions"]))
    address, nobody = MACHINES["spark-1"].address, f"sudo -u nobody python3 -c '{TAKE}'"
    assert ssh("spark-1", nobody) == ""
    ssh("spark-1", "sudo systemctl stop sparkwright-qwen36")
    try:
        for port in (18000, 28000):
            ssh("spark-1", "sudo systemd-run --quiet --uid=nobody --collect "
                f"--unit=posing-{port} python3 -c '{POSE}' {port}")  # fmt: skip
        assert ssh("spark-1", nobody) == ""
        assert status(address, PROXY, *asked) == 503
        assert "HTTP/" not in ssh("spark-1", "sudo journalctl -q -o cat -u 'posing-*'")
    finally:
        ssh("spark-1", "sudo systemctl stop 'posing-*'; sudo systemctl start sparkwright-qwen36")
    until(lambda: status(address, PROXY, *asked) == 200, "it serves again")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("host", GOOD)
def test_no_route_answers_without_the_right_key(proxied: Site, host: str) -> None:
    address = MACHINES[host].address
    assert len(ROUTES) > 50
    for key in (None, "sk-wrong", proxied.key[:-1], proxied.key.swapcase()):
        for method, path in ROUTES:
            if path == "/health":  # an open route, which only shows whether the service runs
                continue
            body = json.dumps(ASK.get(path, {})) if method == "POST" else None
            asked = path.replace("{id}", "resp_0a1b2c")
            seen = status(address, PROXY, method, asked, key, body)
            assert seen in (401, 404), (method, path, key, seen)


def test_the_right_key_gives_access_to_the_clients_routes(proxied: Site) -> None:
    address = MACHINES["spark-1"].address
    for path, body in ASK.items():
        assert status(address, PROXY, "POST", path, proxied.key, json.dumps(body)) == 200
    for path in ("/v1/models", "/metrics"):
        assert status(address, PROXY, "GET", path, proxied.key) == 200
    for path in ("/version", "/openapi.json", "/server_info"):  # clients do not need these routes
        assert status(address, PROXY, "GET", path, proxied.key) == 404


def test_vllm_itself_leaves_routes_open(proxied: Site) -> None:
    """Without the proxy, the routes would answer a user of the host without a key."""
    for path in OPEN:
        body = f"-H 'Content-Type: application/json' -d '{json.dumps(ASK['/tokenize'])}'"
        arguments = body if path in ("/invocations", "/tokenize") else ""
        code = ssh("spark-1", f"{ENGINE}{path} -o /dev/null -w '%{{http_code}}' {arguments}")
        assert code not in ("401", "403", "404"), (path, code)


def test_a_reachable_service_without_a_proxy_is_refused(proxied: Site) -> None:
    proxied.edit(
        "group_data/sparks.py", '"port": 8000,', '"port": 8000, "proxy": False, "bind": "0.0.0.0",'
    )
    try:
        run = proxied.run("--yes", "--limit", "spark-1")
    finally:
        proxied.restore("group_data/sparks.py")
    assert run.code == 2, run.output
    assert "open-routes" in run.output
    assert "/invocations" in run.output


def test_the_smoke_test_finds_a_proxy_without_access_control(proxied: Site) -> None:
    """The test removes HAProxy's line that requires the key."""
    config = "/opt/sparkwright/gateway/haproxy.cfg"
    template = "templates/gateway/haproxy.cfg.j2"
    text = (proxied.folder / template).read_text()
    lines = [line for line in text.splitlines(keepends=True) if "WWW-Authenticate" not in line]
    assert len(lines) < len(text.splitlines())
    (proxied.folder / template).write_text("".join(lines))
    try:
        run = proxied.run("--yes", "--limit", "spark-1")
        assert "WWW-Authenticate" not in ssh("spark-1", f"sudo cat {config}")
    finally:
        proxied.restore(template)
    assert run.refused == {"spark-1"}, run.output
    # Routes that vLLM guards are open, too, since the proxy adds the engine's key.
    for how in ("without the key", "with a wrong key"):
        for route in ("/tokenize", "/v1/completions"):
            assert re.search(rf"POST {route} answers HTTP \d+ {how}", run.output), run.output
    proxied.deploy("--limit", "spark-1")
