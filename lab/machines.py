"""Make single machines from the base; start machines, cut their power, and remove them. Each
machine runs a real systemd.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from lab import apt, cgroups, fakes, origin
from lab.gpu import driver
from lab.layout import (
    APT_PORT,
    BRIDGE,
    CDN,
    CONTROLLER,
    DEPOT,
    HUB_PORT,
    MACHINES,
    PREFIX_LENGTH,
    REGISTRY_PORT,
    SSH,
    STATE,
    USER,
    Machine,
)

#: If process 1 is systemd, the machines run as its units, in a slice of their own.
SYSTEMD_HOST = Path("/run/systemd/system").is_dir()
_HUB = Path(__file__).resolve().parent / "hub"
#: A copy of the depot's code in this checkout, which may be removed before the fleet.
_DEPOT_LAB = STATE / "depot" / "lab"


def running(machine: Machine) -> int | None:
    """Process id of the machine's own process 1, in this machine's numbers; None when off."""
    try:
        pid = int((machine.home / "pid").read_text())
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    if f"--machine={machine.machine}".encode() not in parts:
        return None
    children = Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(OSError, IndexError):
        return int(children.read_text().split()[0])
    return None


def start(machine: Machine, base: Path) -> None:
    """Boot a machine; the machine keeps its files, including Docker's files."""
    if running(machine):
        return
    _unmount(machine)
    for name in ("upper", "work", "root", "docker", "containerd"):
        (machine.home / name).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={base},upperdir={machine.home}/upper,workdir={machine.home}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, machine.root], check=True)
    if not (machine.root / "etc/sparkwright-lab/configured").exists():
        _configure(machine)
    command = [
        "systemd-nspawn",
        "--quiet",
        f"--directory={machine.root}",
        f"--machine={machine.machine}",
        "--boot",
        "--keep-unit",
        f"--register={'yes' if SYSTEMD_HOST else 'no'}",
        f"--network-bridge={BRIDGE}",
        "--capability=all",
        # Docker inside the machine needs these system calls.
        "--system-call-filter=add_key keyctl bpf",
        # All hosts share the kernel's log: a host's doctor would report events of other hosts.
        "--system-call-filter=~syslog",
        "--console=read-only",
        *_binds(machine),
    ]
    if not SYSTEMD_HOST:
        command = [*cgroups.enter(machine.machine), *command]
    else:
        scope = ["systemd-run", "--quiet", "--scope", "--slice=sparkwright-lab.slice"]
        command = [*scope, f"--unit={machine.machine}", "--property=Delegate=yes", *command]
    with (machine.home / "console.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
        )
    (machine.home / "pid").write_text(str(process.pid))


def hub_is_ours() -> bool:
    """Return whether the running depot runs this checkout's hub."""
    return origin.digest([_DEPOT_LAB / "hub"]) == origin.digest([_HUB])


def cut_power(machine: Machine) -> None:
    """End every process of the machine at once, as a power cut does. Its disk stays."""
    leader = running(machine)
    if leader:
        # The end of process 1 ends every other process of its namespace.
        os.kill(leader, signal.SIGKILL)
        deadline = time.monotonic() + 15
        while running(machine) and time.monotonic() < deadline:
            time.sleep(0.05)
    # systemd-nspawn ends after its process 1; an instance that never had a process 1 is ended here.
    pid = _nspawn(machine)
    deadline = time.monotonic() + 10
    while pid and time.monotonic() < deadline:
        time.sleep(0.05)
        pid = _nspawn(machine)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    (machine.home / "pid").unlink(missing_ok=True)
    cgroups.remove(machine.machine)
    _unmount(machine)


def remove(machine: Machine) -> None:
    """Cut the power and remove the machine's files."""
    cut_power(machine)
    shutil.rmtree(machine.home, ignore_errors=True)


def inside(machine: Machine, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a machine as root, without SSH."""
    leader = running(machine)
    if leader is None:
        raise SystemExit(f"{machine.name} is off")
    arguments = ["nsenter", f"--target={leader}", "--all", "--", *command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def _nspawn(machine: Machine) -> int | None:
    """Process id of the machine's systemd-nspawn, even if its pid file is lost."""
    wanted = f"--machine={machine.machine}".encode()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            parts = entry.read_bytes().split(b"\0")
            if parts[0].endswith(b"systemd-nspawn") and wanted in parts:
                state = entry.with_name("stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z":
                    return int(entry.parent.name)
    return None


def _unmount(machine: Machine) -> None:
    """Undo every mount below the machine's folder, the innermost first."""
    prefix = str(machine.home)
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for position in sorted((m for m in mounts if m.startswith(f"{prefix}/")), reverse=True):
        subprocess.run(["umount", "--lazy", position], capture_output=True, check=False)


def _binds(machine: Machine) -> list[str]:
    if machine is DEPOT:
        for name in ("registry", "hub", "apt"):
            (STATE / "depot" / name).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(_DEPOT_LAB, ignore_errors=True)
        shutil.copytree(_HUB, _DEPOT_LAB / "hub", ignore=shutil.ignore_patterns("__pycache__"))
        return [
            f"--bind={STATE}/depot/registry:/var/lib/docker-registry",
            f"--bind={STATE}/depot/hub:/srv/hub",
            f"--bind-ro={STATE}/depot/apt:/srv/apt",
            f"--bind-ro={_DEPOT_LAB}:/srv/lab",
        ]
    # On a real directory Docker uses overlay2; on an overlay it would fall back to copies.
    result = [f"--bind={machine.home}/docker:/var/lib/docker"]
    if machine.newest:
        result.append(f"--bind={machine.home}/containerd:/var/lib/containerd")
    if machine.devices:
        (machine.home / "models").mkdir(exist_ok=True)
        result.append(f"--bind={machine.home}/models:/opt/models")
    return [*result, *(f"--bind={node}" for node in machine.devices)]


def _configure(machine: Machine) -> None:
    """Write a machine's own files and settings over the base, before the first boot."""
    root = machine.root
    names = "".join(f"{other.address} {other.name}\n" for other in MACHINES)
    _write(root, "etc/hostname", f"{machine.name}\n")
    _write(root, "etc/hosts", f"127.0.0.1 localhost\n{CONTROLLER} controller\n{names}")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    _write(root, "etc/resolv.conf", "")
    network = f"[Match]\nName=host0\n[Network]\nAddress={machine.address}/{PREFIX_LENGTH}\n"
    if machine is DEPOT:
        network += f"Address={CDN}/{PREFIX_LENGTH}\n"
    _write(root, "etc/systemd/network/10-host0.network", f"{network}LinkLocalAddressing=no\n")
    _enable(root, "systemd-networkd.service")
    for unit in (
        "systemd-modules-load.service",  # there are no kernel modules
        "systemd-networkd-wait-online.service",
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "dpkg-db-backup.timer",
        "e2scrub_all.timer",
        "fstrim.timer",
    ):
        _mask(root, unit)
    # FAKE for a time service that has synchronised: hosts have this machine's clock.
    _write(root, "etc/tmpfiles.d/sparkwright-lab.conf", "f /run/systemd/timesync/synchronized\n")
    _users(root, "sudo" if machine.bare else "sudo,docker")
    if machine.bare:
        apt.use(root)
    if machine is DEPOT:
        _depot(root)
    else:
        _mask(root, "docker-registry.service")
        daemon: dict[str, Any] = {
            "insecure-registries": [f"{CONTROLLER}/{PREFIX_LENGTH}"],
        }
        if not machine.bare:
            runtime = {"args": [], "path": "nvidia-container-runtime"}
            daemon["runtimes"] = {"nvidia": runtime}
        if machine.newest:
            daemon["features"] = {"containerd-snapshotter": True}
        if machine.devices:
            daemon |= driver.install(root)
        _write(root, "etc/docker/daemon.json", json.dumps(daemon, indent=4) + "\n")
        fakes.install(machine)
    _write(root, "etc/sparkwright-lab/configured", "")


def _users(root: Path, groups: str) -> None:
    """Add the deploy user, as on a real Spark: not root, but with sudo and in the group docker."""
    options = ["--create-home", "--shell", "/bin/bash", "--groups", groups]
    subprocess.run(["chroot", root, "useradd", *options, USER], check=True)
    _write(root, f"etc/sudoers.d/{USER}", f"{USER} ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    home = root / "home" / USER / ".ssh"
    home.mkdir(mode=0o700)
    shutil.copyfile(SSH / "id_ed25519.pub", home / "authorized_keys")
    owner = f"{USER}:{USER}"
    subprocess.run(["chroot", root, "chown", "-R", owner, f"/home/{USER}/.ssh"], check=True)
    for old in (root / "etc/ssh").glob("ssh_host_*"):
        old.unlink()
    for name in ("host_ed25519", "host_ed25519.pub"):
        target = root / "etc/ssh" / f"ssh_{name.replace('ed25519', 'ed25519_key')}"
        shutil.copyfile(SSH / name, target)
        target.chmod(0o600)
    _write(root, "etc/ssh/sshd_config.d/lab.conf", "UseDNS no\nPrintMotd no\nMaxStartups 50\n")


def _depot(root: Path) -> None:
    """Write the units of registry and hub."""
    for unit in ("docker.service", "docker.socket", "containerd.service"):
        _mask(root, unit)
    registry = (
        "version: 0.1\nlog: {level: warn}\n"
        "storage:\n  filesystem: {rootdirectory: /var/lib/docker-registry}\n"
        "  delete: {enabled: true}\n"
        f"http: {{addr: ':{REGISTRY_PORT}'}}\n"
    )
    _write(root, "etc/docker/registry/config.yml", registry)
    # The registry runs as root, since its folder is bound from outside.
    override = "[Service]\nUser=root\nGroup=root\n"
    _write(root, "etc/systemd/system/docker-registry.service.d/lab.conf", override)
    _enable(root, "docker-registry.service")
    hub = (
        "[Unit]\nDescription=FAKE for a Hugging Face hub (sparkwright lab)\n"
        "After=network.target\n"
        "[Service]\nWorkingDirectory=/srv/lab\nEnvironment=SPARKWRIGHT_LAB_HUB_DATA=/srv/hub\n"
        "Environment=PYTHONDONTWRITEBYTECODE=1\n"
        f"Environment=SPARKWRIGHT_LAB_HUB_CDN=http://{CDN}:{HUB_PORT}\n"
        "ExecStart=/usr/bin/python3 -m uvicorn hub.app:app --host 0.0.0.0 "
        f"--port {HUB_PORT} --log-level warning\n"
        "Restart=on-failure\n[Install]\nWantedBy=multi-user.target\n"
    )
    _write(root, "etc/systemd/system/sparkwright-lab-hub.service", hub)
    _enable(root, "sparkwright-lab-hub.service", "/etc/systemd/system")
    packages = (
        "[Unit]\nDescription=apt repository (sparkwright lab)\nAfter=network.target\n"
        f"[Service]\nExecStart=/usr/bin/python3 -m http.server {APT_PORT} --directory /srv/apt\n"
        "Restart=on-failure\n[Install]\nWantedBy=multi-user.target\n"
    )
    _write(root, "etc/systemd/system/sparkwright-lab-apt.service", packages)
    _enable(root, "sparkwright-lab-apt.service", "/etc/systemd/system")


def _write(root: Path, path: str, text: str, mode: int = 0o644) -> None:
    folder = root / path
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text(text)
    folder.chmod(mode)


def _enable(root: Path, unit: str, folder: str = "/usr/lib/systemd/system") -> None:
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit).unlink(missing_ok=True)
    (wants / unit).symlink_to(f"{folder}/{unit}")


def _mask(root: Path, unit: str) -> None:
    path = root / "etc/systemd/system" / unit
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/null")
