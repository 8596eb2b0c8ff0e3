"""State of a host before bootstrap. The program runs on the host, as root if sudo permits it."""

import grp
import os
import pwd
import re
import shutil
import time
from pathlib import Path

from sparkwright.host import observe
from sparkwright.host.lib import apt, documents, memory, systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class BootstrapRequest:
    """Request for a host's state: the usual observation, and packages by name."""

    observation: observe.ObservationRequest = field(default_factory=observe.ObservationRequest)
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Firewall:
    """The active firewall: ufw or firewalld. ``rules`` is the list that the firewall's command
    prints.
    """

    name: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class BootstrapState:
    """State of a host before bootstrap: the usual observation, and further facts.

    Attributes:
        passwordless: whether the login user's sudo works without a password.
        groups: names of the login user's groups.
        codename: codename in /etc/os-release, e.g. ``noble``.
        gb10: whether the PCI bus has a GB10.
        nvidia: whether the PCI bus has an NVIDIA GPU.
        apt: whether apt-get is installed.
        docker_is_older: whether dockerd started before the toolkit's hook was installed; dockerd
            looks for hooks at its start.
        driver_installer: whether NVIDIA's own installer (.run) installed a driver.
        secure_boot: whether the kernel loads signed modules only.
        packages: requested packages that are installed.
        fresh: requested packages that were installed since the boot.
        networks: addresses with their networks, e.g. ``192.168.1.21/24``.
        boot: the kernel's id of this boot.
    """

    observed: observe.Observation
    passwordless: bool = False
    groups: tuple[str, ...] = ()
    codename: str = ""
    gb10: bool = False
    nvidia: bool = False
    apt: bool = False
    docker_is_older: bool = False
    driver_installer: bool = False
    secure_boot: bool = False
    packages: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    swappiness: int | None = None
    firewall: Firewall | None = None
    networks: tuple[str, ...] = ()
    boot: str = ""

    @property
    def driver(self) -> str | None:
        """Version of the driver that nvidia-smi reports; None without a driver."""
        return next((device.driver for device in self.observed.gpu.gpus), None)


_PCI = Path("/sys/bus/pci/devices")
#: PCI ids of GB10 GPUs (NVIDIA/NV-Kernels#396).
_GB10 = range(0x2E00, 0x2E40)
_HOOK = Path("/usr/bin/nvidia-container-runtime-hook")
_SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
_LISTS = Path("/var/lib/dpkg/info")
_UFW = Path("/etc/ufw")


def booted() -> float:
    """Return this system's boot time, in seconds since the epoch; the result is also correct in a
    container.
    """
    started = Path("/proc/1/stat").read_text().rsplit(")", 1)[1].split()[19]
    kernel = re.search(r"^btime (\d+)", documents.text("/proc/stat") or "", re.MULTILINE)
    return int(kernel[1] if kernel else 0) + int(started) / os.sysconf("SC_CLK_TCK")


def fresh(names: tuple[str, ...]) -> tuple[str, ...]:
    """Select the installed packages whose files are newer than the boot."""
    since = booted()

    def newer(name: str) -> bool:
        lists = [*_LISTS.glob(f"{name}.list"), *_LISTS.glob(f"{name}:*.list")]
        return any(list_file.stat().st_mtime > since for list_file in lists)

    return tuple(name for name in names if newer(name))


def gpus_on_bus() -> tuple[bool, bool]:
    """Return whether the PCI bus has an NVIDIA GPU, and whether that GPU is a GB10."""
    devices = [
        int(documents.text(device / "device") or "0", 16)
        for device in (_PCI.iterdir() if _PCI.is_dir() else ())
        if (documents.text(device / "vendor") or "").strip() == "0x10de"
        and (documents.text(device / "class") or "").startswith("0x03")
    ]
    return bool(devices), any(identity in _GB10 for identity in devices)


def docker_is_older() -> bool:
    """Return whether dockerd was started before the NVIDIA toolkit's hook was installed."""
    shown = systemd.showing("docker.service", fields="ExecMainStartTimestampMonotonic")
    properties = documents.pairs(shown.outcome().out)
    started = int(properties.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    if not started or not _HOOK.exists():
        return False
    return _HOOK.stat().st_ctime > time.time() - time.monotonic() + started


def firewall() -> Firewall | None:
    """Return the active firewall with its rules."""
    if "ENABLED=yes" in (documents.text(_UFW / "ufw.conf") or ""):
        rules = (documents.text(_UFW / "user.rules") or "").splitlines()
        return Firewall("ufw", tuple(rule for rule in rules if rule.startswith("### tuple ###")))
    if shutil.which("firewall-cmd") and systemd.is_active("firewalld.service"):
        rules = run("firewall-cmd", "--permanent", "--list-rich-rules", timeout=10).out.splitlines()
        return Firewall("firewalld", tuple(rule.strip() for rule in rules))
    return None


def networks() -> tuple[str, ...]:
    """Return this host's addresses with their networks."""
    lines = run("ip", "-o", "addr", "show", "scope", "global", timeout=10).out.splitlines()
    return tuple(line.split()[3] for line in lines if len(line.split()) > 3)


def groups_of(user: str) -> tuple[str, ...]:
    """Return the names of a user's groups, as the next login will have them."""
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return ()
    return tuple(group.gr_name for group in grp.getgrall() if group.gr_gid in numbers)


def passwordless(user: str) -> bool:
    """Return whether a user's sudo works without a password; a cached password does not count."""
    if user == "root":
        return True
    return run("runuser", "-u", user, "--", "sudo", "-k", "-n", "true", timeout=20).ok


def main(request: BootstrapRequest) -> BootstrapState:
    """Inspect the host."""
    observed = observe.main(request.observation)
    root = observed.sudo is None
    release = documents.pairs(documents.text("/etc/os-release") or "")
    packages = apt.installed(*request.packages) if request.packages else ()
    nvidia, gb10 = gpus_on_bus()
    devices = observed.gpu.gpus
    return BootstrapState(
        observed=observed,
        passwordless=passwordless(observed.user) if root else False,
        groups=groups_of(observed.user),
        codename=release.get("VERSION_CODENAME", "").strip("\"'"),
        gb10=gb10 or any(device.compute_cap == "12.1" for device in devices),
        nvidia=nvidia or bool(devices),
        apt=shutil.which("apt-get") is not None,
        docker_is_older=docker_is_older(),
        driver_installer=Path("/usr/bin/nvidia-uninstall").exists(),
        secure_boot=_SECURE_BOOT.is_file() and _SECURE_BOOT.read_bytes()[-1:] == b"\x01",
        packages=packages,
        fresh=fresh(packages),
        swappiness=memory.swappiness(),
        firewall=firewall() if root else None,
        networks=networks(),
        boot=(documents.text("/proc/sys/kernel/random/boot_id") or "").strip(),
    )
