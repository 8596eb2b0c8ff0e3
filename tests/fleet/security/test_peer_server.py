"""The peer server of a deployed host: its user, its view, its port, and its access control."""

import re
from collections.abc import Iterator

import pytest

from tests.fleet.site import GOOD, MACHINES, Site, all_bare, hub, inside, ssh, until

PORT = 18650


@pytest.fixture(scope="module")
def seed(site: Site) -> Iterator[str]:
    """A host whose peer server runs, since Docker has pulled an image through this server."""
    all_bare(site)
    site.deploy(refused={"hopper-1"}, deploy=site.only_fetching())
    yield next(host for host in GOOD if _unit(host))
    hub("DELETE")


def _unit(host: str) -> str:
    arguments = ("systemctl", "list-units", "--plain", "--no-legend", "sparkwright-share-*.service")
    return inside(host, *arguments).partition(" ")[0]


def _process(host: str) -> str:
    return inside(host, "systemctl", "show", "-P", "MainPID", _unit(host))


def test_the_peer_server_is_not_root_and_reads_only_its_files(seed: str) -> None:
    status = inside(seed, "cat", f"/proc/{_process(seed)}/status")
    uids = re.search(r"Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", status)
    assert uids is not None
    assert "0" not in uids.groups()
    # CAP_DAC_READ_SEARCH is bit 2.
    assert re.findall(r"Cap(?:Prm|Eff|Bnd|Amb):\s+(\w+)", status) == ["0000000000000004"] * 4
    root = f"/proc/{_process(seed)}/root"
    for path in ("etc/shadow", "home/spark", "var/lib/docker", "opt/sparkwright/services"):
        gone = inside(seed, "sh", "-c", f"test -e {root}/{path} || echo gone")
        assert gone == "gone", path
    shown = inside(seed, "ls", f"{root}/opt/sparkwright", f"{root}/opt/sparkwright/state")
    assert "services" not in shown.split()
    text = inside(seed, "systemd-analyze", "security", "--no-pager", _unit(seed))
    exposure = re.search(r"exposure level for \S+ ([\d.]+)", text)
    assert exposure is not None
    assert float(exposure[1]) <= 3.0


def test_systemd_holds_the_port_and_no_local_user_can_take_it(seed: str) -> None:
    listening = inside(seed, "ss", "-Hltnp", f"sport = :{PORT}").splitlines()
    assert {line.split()[3] for line in listening} == {
        f"127.0.0.1:{PORT}",
        f"{MACHINES[seed].address}:{PORT}",
    }
    assert all('"systemd",pid=1,' in line for line in listening)
    take = (
        "import socket,sys; s=socket.socket();"
        " s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
        " s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
        f"try: s.bind((sys.argv[1], {PORT})); s.listen(); print('taken')\n"
        "except OSError as error: print(error.strerror)"
    )
    for address in ("0.0.0.0", "127.0.0.1", MACHINES[seed].address):
        assert ssh(seed, f'python3 -c "{take}" {address}') == "Address already in use"
    # After a crash, the port is free for at most a second (docs/security.md).
    before = _process(seed)
    inside(seed, "systemctl", "kill", "--signal=KILL", _unit(seed))
    until(lambda: _process(seed) not in ("0", before), "the server is started again", 30)
    for address in ("127.0.0.1", MACHINES[seed].address):
        assert ssh(seed, f'python3 -c "{take}" {address}') == "Address already in use"


def test_a_neighbour_without_a_key_gets_no_file(seed: str) -> None:
    other = next(host for host in GOOD if host != seed)
    container = ssh(seed, "sudo ls /var/lib/docker/containers | head -1") or "c" * 64
    up = "..%2F" * 4
    for path in (
        f"/files/models/AEON-7--Qwen%2F{up}var%2Flib%2Fdocker%2Fcontainers/{container}/config.v2.json",
        f"/files/models/org--model/{'a' * 40}/config.json",
        "/files/",
    ):
        ask = f"curl -s --path-as-is -o /dev/null -w '%{{http_code}}' 'http://{_at(seed)}{path}'"
        assert ssh(other, ask) == "401"
    assert ssh(other, f"curl -s -o /dev/null -w '%{{http_code}}' http://{_at(seed)}/v2/") == "404"
    local = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{PORT}/v2/"
    assert ssh(seed, local) == "401"


def test_the_peer_server_survives_a_neighbours_resets(seed: str) -> None:
    before = _process(seed)
    script = (
        "import socket, struct, sys\nfor _ in range(10_000):\n"
        f"    with socket.create_connection((sys.argv[1], {PORT}), 5) as item:\n"
        "        linger = struct.pack('ii', 1, 0)\n"
        "        item.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)"
    )
    other = next(host for host in GOOD if host != seed)
    inside(other, "python3", "-c", script, MACHINES[seed].address)
    ask = f"curl -s -m 5 -o /dev/null -w '%{{http_code}}' http://{_at(seed)}/files/x"
    assert ssh(other, ask) == "401"
    assert _process(seed) == before


def _at(host: str) -> str:
    return f"{MACHINES[host].address}:{PORT}"


def test_the_fleets_secret_is_on_no_host(seed: str, site: Site) -> None:
    secret = (site.folder / ".sparkwright/peer_secret").read_text().strip()
    for host in GOOD:
        places = "/opt /etc /run /tmp /var/tmp /home /var/lib/systemd"
        result = ssh(host, f"sudo grep -rlF --devices=skip -e '{secret}' {places} || true")
        assert result == ""
    keys = ssh(seed, "sudo stat -c '%a %U' /run/sparkwright/peers/served/*")
    assert set(keys.splitlines()) == {"600 root"}
