"""Deploy on a bare host without Docker and NVIDIA's toolkit, and complete removal."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab import apt, fleet, machines
from lab.layout import SPARES, USER
from tests.fleet.site import Run, Site, answers, inside, ssh, until
from tests.fleet.spares import as_installed

(BARE,) = (spare for spare in SPARES if spare.bare)
INVENTORY = "inventory/bare.py"
ALONE = "roles.bootstrap.bootstrap"
STEPS = ["docker", "nvidia-container-toolkit", "docker-group", "earlyoom", "unattended-upgrades"]
DAEMON = "/etc/docker/daemon.json"
RECORD = "/var/lib/sparkwright/bootstrap.json"
SOURCES = {"nvidia-container-toolkit": {"uri": f"{apt.ADDRESS}/nvidia", "key": str(apt.KEY)}}


def _bootstrap(site: Site, steps: list[str], **more: object) -> None:
    data = {"bootstrap": steps, "bootstrap_sources": SOURCES, **more}
    with (site.folder / INVENTORY).open("a") as file:
        file.write(f"others[0][1].update({data!r})\n")


@pytest.fixture
def fresh(site: Site) -> Iterator[Site]:
    """Freshly installed host."""
    with as_installed(site, BARE, INVENTORY):
        _bootstrap(site, STEPS)
        yield site


def _run(site: Site, *arguments: str, code: int = 0, deploy: str = "deploy.py") -> Run:
    run = site.run("--yes", *arguments, inventory=INVENTORY, deploy=deploy)
    assert run.code == code, run.output
    return run


@contextlib.contextmanager
def _firmware() -> Iterator[None]:
    """Boot a machine that has shut down, since systemd-nspawn does not restart it."""

    def boot() -> None:
        until(lambda: machines.running(BARE) is None, "down", 120)
        machines.cut_power(BARE)
        fleet.up((BARE.name,))

    with ThreadPoolExecutor(1) as pool:
        booted = pool.submit(boot)
        yield
        booted.result()


def _has(program: str) -> bool:
    return machines.inside(BARE, ["sh", "-c", f"command -v {program}"]).returncode == 0


def _packages() -> str:
    return inside(BARE.name, "dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n")


@pytest.mark.timeout(600)
def test_one_command_sets_up_a_bare_host_and_remove_undoes_it(fresh: Site) -> None:
    before, daemon = _packages(), inside(BARE.name, "cat", DAEMON)
    assert not _has("docker")
    assert not _has("nvidia-ctk")
    dry = fresh.run("--dry", inventory=INVENTORY)
    assert dry.code == 0, dry.output
    for name in ("would install docker.io, docker-cli, docker-compose",
                  "would add the repository http://", "would restart Docker",
                  "would make spark a member of the group docker",
                  "checked again after bootstrap"):  # fmt: skip
        assert name in dry.output
    assert _packages() == before
    inside(BARE.name, "test", "!", "-e", RECORD)

    run = _run(fresh)
    assert run.host(BARE.name)["changes"][:3] == [
        "Bootstrap: docker", "Bootstrap: nvidia-container-toolkit", "Bootstrap: docker-group"
    ]  # fmt: skip
    (service,) = run.host(BARE.name)["services"]
    assert service["smoke"]["failures"] == []
    assert answers(fresh, BARE.name)
    assert inside(BARE.name, "cat", DAEMON) == daemon
    assert "docker" in ssh(BARE.name, "id -nG")
    assert "--prefer" in inside(BARE.name, "systemctl", "show", "-p", "ExecStart", "earlyoom")

    again = _run(fresh)
    assert again.changed == set(), again.output
    assert f"remote executions: {BARE.name} 3" in again.output

    text = fresh.sparkwright("remove", INVENTORY, "--weights", "--yes")
    assert "--bootstrap undoes them" in text
    assert _has("docker")
    text = fresh.sparkwright("remove", INVENTORY, "--weights", "--bootstrap", "--yes")
    assert "package docker.io" in text
    gone = set(_packages().splitlines()) - set(before.splitlines())
    # HAProxy and its dependencies stay: a deploy installed them, not bootstrap.
    assert not [item for item in gone if item.endswith(" installed") and "docker" in item]
    assert not _has("docker")
    assert not _has("nvidia-ctk")
    assert not _has("earlyoom")
    assert inside(BARE.name, "cat", DAEMON) == daemon
    assert "docker" not in ssh(BARE.name, "id -nG")
    inside(BARE.name, "test", "!", "-e", RECORD)


#: Progress on the host when the controller dies.
MOMENTS = {
    "recorded": f"test -e {RECORD}",
    "dpkg at work": "pgrep -x dpkg",
    "Docker is there, the toolkit is not": "test -x /usr/sbin/dockerd",
    "the toolkit is there": "test -x /usr/bin/nvidia-ctk",
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("moment", MOMENTS)
def test_bootstrap_continues_after_a_kill(fresh: Site, moment: str) -> None:
    killed = subprocess.Popen(
        fresh.command("--yes", inventory=INVENTORY, deploy=ALONE), cwd=fresh.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    look = ["sh", "-c", MOMENTS[moment]]
    until(lambda: machines.inside(BARE, look).returncode == 0, moment, 120)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    _run(fresh, deploy=ALONE)
    assert inside(BARE.name, "dpkg", "--audit") == ""
    assert inside(BARE.name, "systemctl", "is-active", "docker") == "active"
    # Docker was started after the hook was installed.
    inside(BARE.name, "sh", "-c", "test $(stat -c %Z /usr/bin/nvidia-container-runtime-hook) -le "
           "$(stat -c %Z /proc/$(pidof dockerd))")  # fmt: skip
    assert _run(fresh, deploy=ALONE).changed == set()
    text = fresh.sparkwright("remove", INVENTORY, "--bootstrap", "--yes")
    assert "package docker.io" in text
    assert not _has("docker")


@pytest.mark.timeout(400)
def test_bootstrap_continues_after_a_power_cut(fresh: Site) -> None:
    killed = subprocess.Popen(
        fresh.command("--yes", inventory=INVENTORY, deploy=ALONE), cwd=fresh.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    look = ["pgrep", "-x", "dpkg"]
    until(lambda: machines.inside(BARE, look).returncode == 0, "dpkg", 120)
    machines.cut_power(BARE)
    killed.wait(timeout=120)
    fleet.up((BARE.name,))
    _run(fresh, deploy=ALONE)
    assert inside(BARE.name, "dpkg", "--audit") == ""
    assert _run(fresh, deploy=ALONE).changed == set()


@pytest.mark.timeout(300)
def test_a_first_bootstrap_prompts_for_a_password(fresh: Site) -> None:
    """The command prompts for the password once and shows it in no process list; afterwards sudo
    needs no password.
    """
    inside(BARE.name, "sh", "-c", f"echo '{USER}:a-secret-of-hers' | chpasswd; "
           f"echo '{USER} ALL=(ALL) ALL' > /etc/sudoers.d/{USER}")  # fmt: skip
    refused = fresh.run("--yes", inventory=INVENTORY, deploy=ALONE)
    assert refused.refused == {BARE.name}
    # All processes that start during bootstrap, to search them for the password.
    watch = "while :; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; sleep 0.05; done"
    inside(BARE.name, "systemd-run", "--unit=eyes", "sh", "-c", f"{watch} > /run/seen 2>/dev/null")
    arguments = ["bootstrap", INVENTORY, "--password", "--step", "sudoers", "--step", "docker"]
    leader, follower = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "sparkwright", *arguments], cwd=fresh.folder, stdin=follower,
        stdout=follower, stderr=follower, start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    text = b""
    try:
        while b"assword" not in text:
            text += os.read(leader, 4096)
        os.write(leader, b"a-secret-of-hers\n")
        while chunk := os.read(leader, 4096):
            text += chunk
    except OSError:
        pass  # the last process closes the terminal
    assert done.wait(timeout=200) == 0, text.decode(errors="replace")
    inside(BARE.name, "systemctl", "stop", "eyes")
    assert "a-secret-of-hers" not in inside(BARE.name, "sh", "-c", "strings -a /run/seen || "
                                            "tr -c '[:print:]' '\\n' < /run/seen")  # fmt: skip
    assert b"a-secret-of-hers" not in text
    assert ssh(BARE.name, "sudo -k -n id -u") == "0"
    assert _has("docker")


@pytest.mark.timeout(300)
def test_packages_with_a_foreign_signature_are_not_installed(fresh: Site) -> None:
    """The repository's files belong to an attacker, as on a hijacked mirror."""
    packages = apt.PLACE / "nvidia/Packages"
    text = packages.read_text()
    packages.write_text(text.replace("1.0-fake", "6.6-evil"))
    try:
        run = _run(fresh, code=1, deploy=ALONE)
    finally:
        packages.write_text(text)
    assert run.refused == {BARE.name}
    assert not _has("nvidia-ctk")
    other = {**SOURCES["nvidia-container-toolkit"], "fingerprint": "0" * 40}
    _bootstrap(fresh, STEPS, bootstrap_sources={"nvidia-container-toolkit": other})
    run = _run(fresh, code=1, deploy=ALONE)
    assert "holds the key" in run.output
    assert not _has("nvidia-ctk")
    key = "/etc/apt/keyrings/sparkwright-nvidia-container-toolkit.asc"
    inside(BARE.name, "test", "-e", key)  # the first run wrote this key


@pytest.mark.timeout(400)
def test_a_driver_is_installed_and_its_host_rebooted_only_on_request(fresh: Site) -> None:
    """The test simulates a PCI bus with a GPU, since this machine has no GPU."""
    _bootstrap(fresh, ["driver"], bootstrap_sources={"driver": SOURCES["nvidia-container-toolkit"]})
    inside(BARE.name, "rm", "/usr/bin/nvidia-smi")
    bus = "mkdir -p /run/pci/0 && cd /run/pci/0 && echo 0x10de > vendor && echo 0x2b85 > device && "
    bus += "echo 0x030000 > class && mount --bind /run/pci /sys/bus/pci/devices"
    inside(BARE.name, "sh", "-c", bus)
    boot = inside(BARE.name, "cat", "/proc/sys/kernel/random/boot_id")
    run = _run(fresh, code=1, deploy=ALONE)
    assert "bootstrap_reboot=True" in run.output
    assert inside(BARE.name, "cat", "/proc/sys/kernel/random/boot_id") == boot
    with _firmware():
        run = _run(fresh, "--data", "bootstrap_reboot=True", deploy=ALONE)
    assert "rebooted" in run.host(BARE.name)["changes"]
    assert inside(BARE.name, "cat", "/proc/sys/kernel/random/boot_id") != boot
    assert _run(fresh, deploy=ALONE).changed == set()
