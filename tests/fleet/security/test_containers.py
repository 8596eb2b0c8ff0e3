"""Rights of an attacker's program in a service's container, and access to the key."""

import json
from collections.abc import Iterator

import pytest

from tests.fleet.site import ENGINE, MACHINES, Site, answers, inside, release, ssh, until

HOST, NAME = "spark-1", "sparkwright-qwen36"
#: Each line needs a capability that Docker gives by default, or that root on the host has.
ATTACKS = {
    "raw sockets": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packets of others": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "another root": "import os; os.chroot('/tmp')",
    "another user": "import os; os.setuid(1)",
    "files of others": "import os; open('/tmp/own', 'w').close(); os.chown('/tmp/own', 1, 1)",
    "device nodes": "import os; os.mknod('/tmp/memory', 0o20600, os.makedev(1, 1))",
    "mounts": "import ctypes; "
    "mounted = ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0; "
    "raise SystemExit if mounted else PermissionError",
    "the models": "open('/models/qwen36/planted', 'w')",
    "the key's file": "open('/run/secrets/engine.env', 'a')",
}
#: Threads count like processes, and need less memory.
FORK_BOMB = """
import threading, time
threading.stack_size(65536)
count, end = 0, threading.Event()
try:
    while count < 6000:
        threading.Thread(target=end.wait, daemon=True).start()
        count += 1
except RuntimeError:
    time.sleep(2)  # the limit is reached: for two seconds nothing more can start in here
print(count)
"""


@pytest.fixture(scope="module", params=["default", "strict"])
def hardening(site: Site, request: pytest.FixtureRequest) -> Iterator[str]:
    """One host behind a proxy, with each kind of network."""
    site.power_on()
    site.repair()
    settings = f'"port": 8000, "proxy": True, "hardening": "{request.param}",'
    site.edit("group_data/sparks.py", '"port": 8000,', settings)
    site.deploy("--limit", HOST)
    yield request.param
    site.repair()


def within(program: str) -> str:
    """Output of Python in the container, and its exit code."""
    quoted = program.replace("'", "'\\''")
    return ssh(HOST, f"docker exec {NAME} python3 -c '{quoted}' 2>&1; echo ended $?")


def processes() -> list[str]:
    """Pids of the container on its host."""
    pids = ssh(HOST, f"docker top {NAME} -eo pid").split()[1:]
    assert pids
    return pids


def test_the_service_answers_and_a_second_run_changes_nothing(site: Site, hardening: str) -> None:
    assert answers(site, HOST)
    assert site.deploy("--limit", HOST).changed == set()
    assert "error" not in [
        load["severity"]
        for load in json.loads(
            site.call("doctor", "inventory/virtual.py", "--limit", HOST, "--json").stdout
        )
    ]


def test_no_command_and_no_file_shows_the_key(site: Site, hardening: str) -> None:
    secrets = inside(HOST, "cat", "/opt/sparkwright/services/qwen36/secrets.env")
    engine = secrets.strip().removeprefix("VLLM_API_KEY=")
    for key in (site.key, engine):
        assert key not in ssh(HOST, f"docker inspect {NAME}")
        assert key not in inside(HOST, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert key not in ssh(HOST, f"docker logs {NAME} 2>&1")
        assert key not in inside(HOST, "journalctl", "--no-pager", "-o", "cat")
        assert key not in ssh(HOST, "sudo sh -c 'cat /opt/sparkwright/services/*/releases/*/*'")
    # Only root and vLLM can read the key; vLLM checks it.
    environments = ssh(HOST, f"sudo cat {' '.join(f'/proc/{pid}/environ' for pid in processes())}")
    assert engine in environments
    assert site.key not in environments
    refused = ssh(HOST, f"cat /proc/{processes()[0]}/environ 2>&1 || true")
    assert "Permission denied" in refused
    assert ssh(HOST, f"{ENGINE}/v1/models -o /dev/null -w '%{{http_code}}'") == "401"


def test_no_process_has_or_can_get_a_capability(hardening: str) -> None:
    for pid in processes():
        status = dict(
            line.split(":\t", 1)
            for line in ssh(HOST, f"sudo cat /proc/{pid}/status").splitlines()
            if ":\t" in line
        )
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[name], 16) == 0, (pid, name)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
    form = "{{.HostConfig.Privileged}} {{.HostConfig.CapAdd}} {{.HostConfig.CapDrop}}"
    assert ssh(HOST, f"docker inspect -f '{form}' {NAME}") == "false [] [ALL]"


@pytest.mark.parametrize("attack", ATTACKS)
def test_root_in_the_container_is_not_root_on_the_host(hardening: str, attack: str) -> None:
    text = within(ATTACKS[attack])
    assert text.endswith("ended 1"), text
    assert "PermissionError" in text or "Read-only file system" in text, text


def test_strict_hardening_allows_writes_only_to_listed_places(hardening: str) -> None:
    assert within("open('/tmp/own', 'w')").endswith("ended 0")
    planted = within("open('/usr/planted', 'w')")
    if hardening == "default":
        assert planted.endswith("ended 0"), planted
        return
    assert "Read-only file system" in planted
    assert "Read-only file system" in within("open('/root/.profile', 'a')")
    assert within("open('/root/.cache/own', 'w')").endswith("ended 0")


def test_a_container_shares_neither_memory_nor_network_with_its_host(hardening: str) -> None:
    pid = processes()[0]
    for name in ("ipc", "net", "pid", "mnt"):
        own = ssh(HOST, f"sudo readlink /proc/{pid}/ns/{name}")
        assert own != ssh(HOST, f"sudo readlink /proc/1/ns/{name}"), name
    # The container cannot reach any address.
    out = within("import socket; socket.create_connection(('10.213.77.2', 5000), 3)")
    assert out.endswith("ended 1"), out


def test_written_files_are_removed_with_the_container(site: Site, hardening: str) -> None:
    assert within("open('/tmp/planted', 'w')").endswith("ended 0")
    volumes = ssh(HOST, "docker volume ls -q | wc -l")
    ssh(HOST, "sudo systemctl restart sparkwright-qwen36")
    health = f"{ENGINE}/health -o /dev/null -w '%{{http_code}}' || true"
    until(lambda: ssh(HOST, health) == "200", "it serves again")
    assert within("import os; print(os.path.exists('/tmp/planted'))").startswith("False")
    assert ssh(HOST, "docker volume ls -q | wc -l") == volumes


def test_a_fork_bomb_stops_at_its_limit(site: Site, hardening: str) -> None:
    limit = ssh(HOST, f"docker inspect -f '{{{{.HostConfig.PidsLimit}}}}' {NAME}")
    if ssh(HOST, "docker info -f '{{.PidsLimit}}'") == "false":
        pytest.skip("the kernel of this machine gives its hosts no control group for processes")
    assert limit == "4096"
    text = within(FORK_BOMB)
    assert 0 < int(text.split()[0]) < 4096, text
    assert answers(site, HOST)


def test_a_switch_changes_the_hardening_and_a_rollback_restores_the_former_level(
    site: Site, hardening: str
) -> None:
    if hardening == "default":
        return
    strict = release(HOST)
    site.edit("group_data/sparks.py", '"hardening": "strict"', '"hardening": "default"')
    assert site.deploy("--limit", HOST).changed == {HOST}
    assert release(HOST) != strict
    site.sparkwright("rollback", "inventory/virtual.py", "--limit", HOST, "--yes")
    assert release(HOST) == strict
    assert answers(site, HOST)


@pytest.mark.timeout(300)
def test_without_a_proxy_only_the_published_port_is_reached(site: Site) -> None:
    """A local user, and a neighbour that routes packets, try another port at the container's
    address. The container also tries to reach its host.
    """
    site.power_on()
    site.repair()
    site.edit("group_data/sparks.py", '"port": 8000,', '"port": 8000, "proxy": False,')
    site.deploy("--limit", HOST)
    ssh(HOST, "sudo systemctl restart sparkwright-qwen36")  # a second start adds no rule
    health = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/health || true"
    until(lambda: ssh(HOST, health) == "200", "it serves again")
    count = "sudo iptables-save -t mangle | grep -c -- '-[io] sw-.* -j SPARKWRIGHT-' || true"
    assert ssh(HOST, count) == "4", ssh(HOST, "sudo iptables-save")
    ssh(HOST, "sudo iptables -t mangle -F; sudo iptables -t mangle -X")
    assert ssh(HOST, count) == "0"
    ssh(HOST, "sudo systemctl start sparkwright-watch.service")
    assert ssh(HOST, count) == "4"
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    at, host = ssh(HOST, f"docker inspect -f '{form}' {NAME}"), MACHINES[HOST].address
    ssh(
        HOST,
        f"docker exec -d {NAME} python3 -m http.server 29999;"
        " sudo sysctl -qw net.ipv4.ip_forward=1",
    )
    ssh("spark-2", f"sudo ip route replace {at} via {host}")
    script = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"
    connect = f"python3 -c '{script}'"
    try:
        ssh(HOST, f"sudo {connect} {at} 29999")  # the port is open on its host
        for where, user in ((HOST, "sudo -u nobody "), ("spark-2", "")):
            for port in (29999, 8000):
                out = ssh(where, f"{user}{connect} {at} {port} 2>&1; echo ended $?")
                assert out.endswith("ended 1"), (where, port, out)
        assert within(f"import socket; socket.create_connection(('{host}', 22), 3)").endswith("1")
        assert ssh(HOST, health) == "200"
    finally:
        ssh("spark-2", f"sudo ip route del {at}")
        site.repair()
