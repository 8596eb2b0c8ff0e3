"""What a host is before it is made ready. Runs on the host, as root where sudo lets it."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host import observe
from sparkwright.host.lib import docker, documents, gpu, memory, systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.observation import Distribution


@dataclass(frozen=True)
class BootstrapRequest:
    """What is looked at beyond what every host has: packages by name, small files by path."""

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Firewall:
    """The firewall at work: ufw or firewalld. ``rules`` are those it has, in its own words."""

    name: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class BootstrapState:
    """What a host is before its bootstrap.

    Attributes:
        sudo: why the look could not be taken as root; None when it was.
        user: who logs in.
        passwordless: whether that user's sudo asks for no password.
        groups: names of that user's groups.
        codename: of /etc/os-release, e.g. ``noble``.
        architecture: as ``uname -m`` has it.
        gb10: whether a GB10 is on the PCI bus.
        nvidia: whether any GPU of NVIDIA's is.
        apt: whether there is apt-get.
        docker: whether the docker command is there.
        docker_kind: snap, desktop, rootless or podman, where Docker is one of these.
        compose, toolkit: whether the Compose plugin and nvidia-ctk answer.
        docker_is_older: whether Docker runs since before the toolkit's hook, which it looks for at
            its start.
        driver: version of the driver that answers; None without one.
        driver_installer: whether a driver was installed by NVIDIA's own installer (.run).
        secure_boot: whether only signed kernel modules are loaded.
        packages: those of the request that are installed.
        fresh: those of them that were installed since the boot.
        texts: of the files of the request; None where there is none.
        swap: bytes of swap.
        networks: addresses with their networks, e.g. ``192.168.1.21/24``.
        boot: the kernel's id of this boot.
    """

    user: str
    architecture: str
    sudo: str | None = None
    passwordless: bool = False
    groups: tuple[str, ...] = ()
    distribution: Distribution = field(default_factory=Distribution)
    codename: str = ""
    gb10: bool = False
    nvidia: bool = False
    apt: bool = False
    docker: bool = False
    docker_kind: str | None = None
    compose: bool = False
    toolkit: bool = False
    docker_is_older: bool = False
    driver: str | None = None
    driver_installer: bool = False
    secure_boot: bool = False
    packages: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    texts: dict[str, str | None] = field(default_factory=dict)
    swap: int = 0
    swappiness: int | None = None
    firewall: Firewall | None = None
    networks: tuple[str, ...] = ()
    boot: str = ""


_PCI = Path("/sys/bus/pci/devices")
#: PCI ids of GB10 GPUs (NVIDIA/NV-Kernels#396).
_GB10 = range(0x2E00, 0x2E40)
_HOOK = Path("/usr/bin/nvidia-container-runtime-hook")
_SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
_LISTS = Path("/var/lib/dpkg/info")
_UFW = Path("/etc/ufw")


def installed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the packages that are installed, whole."""
    if not names:
        return ()
    form = "${Package} ${db:Status-Status}\n"
    lines = run("dpkg-query", "-W", "-f", form, *names, timeout=30).out.splitlines()
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line.endswith(" installed")))


def booted() -> float:
    """When this system booted, seconds since the epoch: a container has no other clock for it."""
    started = Path("/proc/1/stat").read_text().rsplit(")", 1)[1].split()[19]
    kernel = documents_of("/proc/stat").get("btime", "0")
    return int(kernel) + int(started) / os.sysconf("SC_CLK_TCK")


def documents_of(path: str) -> dict[str, str]:
    """First word -> the rest, of each line."""
    text = documents.text(path) or ""
    return {
        line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line.split()
    }


def fresh(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of installed packages whose files came since the boot."""
    since = booted()

    def newer(name: str) -> bool:
        lists = [*_LISTS.glob(f"{name}.list"), *_LISTS.glob(f"{name}:*.list")]
        return any(list_file.stat().st_mtime > since for list_file in lists)

    return tuple(name for name in names if newer(name))


def gpus_on_bus() -> tuple[bool, bool]:
    """Whether a GPU of NVIDIA's is on the PCI bus, and whether it is a GB10."""
    devices = [
        int(documents.text(device / "device") or "0", 16)
        for device in (_PCI.iterdir() if _PCI.is_dir() else ())
        if (documents.text(device / "vendor") or "").strip() == "0x10de"
        and (documents.text(device / "class") or "").startswith("0x03")
    ]
    return bool(devices), any(identity in _GB10 for identity in devices)


def docker_is_older() -> bool:
    """Whether dockerd was started before the toolkit's hook came."""
    properties = documents.pairs(
        systemd.showing("docker.service", fields="ExecMainStartTimestampMonotonic").outcome().out
    )
    started = int(properties.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    if not started or not _HOOK.exists():
        return False
    return _HOOK.stat().st_ctime > time.time() - time.monotonic() + started


def firewall() -> Firewall | None:
    """The firewall at work, and what it lets through."""
    if "ENABLED=yes" in (documents.text(_UFW / "ufw.conf") or ""):
        rules = (documents.text(_UFW / "user.rules") or "").splitlines()
        return Firewall("ufw", tuple(rule for rule in rules if rule.startswith("### tuple ###")))
    if shutil.which("firewall-cmd") and systemd.is_active("firewalld.service"):
        rules = run("firewall-cmd", "--permanent", "--list-rich-rules", timeout=10).out.splitlines()
        return Firewall("firewalld", tuple(rule.strip() for rule in rules))
    return None


def networks() -> tuple[str, ...]:
    """Addresses with their networks."""
    lines = run("ip", "-o", "addr", "show", "scope", "global", timeout=10).out.splitlines()
    return tuple(line.split()[3] for line in lines if len(line.split()) > 3)


def groups_of(user: str) -> tuple[str, ...]:
    """Names of a user's groups; a login from now on has them."""
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return ()
    return tuple(group.gr_name for group in grp.getgrall() if group.gr_gid in numbers)


def passwordless(user: str) -> bool:
    """Whether a user's sudo asks for no password, also not a remembered one."""
    if user == "root":
        return True
    return run("runuser", "-u", user, "--", "sudo", "-k", "-n", "true", timeout=20).ok


def main(request: BootstrapRequest) -> BootstrapState:
    """Look at the host."""
    root = os.geteuid() == 0
    gpus, compose = gpu.Question(gpu.IDENTITY), run(*observe.compose_command())
    user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    release = documents.pairs(documents.text("/etc/os-release") or "")
    packages = installed(request.packages)
    nvidia, gb10 = gpus_on_bus()
    devices = gpus.answer().gpus
    info = docker.get("/info") if root else None
    toolkit = run("nvidia-ctk", "--version", timeout=20)
    return BootstrapState(
        user=user,
        architecture=os.uname().machine,
        sudo=None if root else run("sudo", "-n", "true", timeout=10).said or "sudo failed",
        passwordless=passwordless(user) if root else False,
        groups=groups_of(user),
        distribution=observe.distribution(),
        codename=release.get("VERSION_CODENAME", "").strip("\"'"),
        gb10=gb10 or any(device.compute_cap == "12.1" for device in devices),
        nvidia=nvidia or bool(devices),
        apt=shutil.which("apt-get") is not None,
        docker=shutil.which("docker") is not None,
        docker_kind=docker.kind(info),
        compose=compose.ok,
        toolkit=toolkit.ok,
        docker_is_older=docker_is_older(),
        driver=next((device.driver for device in devices), None),
        driver_installer=Path("/usr/bin/nvidia-uninstall").exists(),
        secure_boot=_SECURE_BOOT.is_file() and _SECURE_BOOT.read_bytes()[-1:] == b"\x01",
        packages=packages,
        fresh=fresh(packages),
        texts={path: documents.text(path) for path in request.files},
        swap=memory.meminfo().get("SwapTotal", 0),
        swappiness=memory.swappiness(),
        firewall=firewall() if root else None,
        networks=networks(),
        boot=(documents.text("/proc/sys/kernel/random/boot_id") or "").strip(),
    )
