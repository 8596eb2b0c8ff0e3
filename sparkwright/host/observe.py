"""Reads everything the roles need to know of a host, in one go; changes nothing.

Runs on the host (see roles/remote.py). Every question that can't be answered is answered with
None or with the failing command's own words, never with an exception: a probe that dies tells
nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sparkwright.host.lib import receipt

DOCKER_SOCKET = "/var/run/docker.sock"
UNIT_FIELDS = "Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,NeedDaemonReload"
#: Where the docker command looks for its plugins, in its order.
COMPOSE_PLACES = (
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/lib",
    "/usr/libexec",
)


class Running:
    """A command that runs while others do; at most ``timeout`` seconds."""

    def __init__(self, argv: list[str], timeout: float = 10) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        if shutil.which(argv[0]) is not None:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def outcome(self) -> dict[str, Any]:
        """``code`` is None when it hung, ``found`` False when it is not there."""
        if self._process is None:
            return {"found": False, "code": None, "out": "", "err": ""}
        try:
            out, err = self._process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            said = f"no answer within {self._timeout:.0f} s"
            return {"found": True, "code": None, "out": "", "err": said}
        return {"found": True, "code": self._process.returncode, "out": out, "err": err}


def docker(path: str) -> Any:
    """One GET of Docker's API: decoded JSON, or None when Docker or the object is not there.

    Plain HTTP/1.0 instead of http.client, whose import alone is a fifth of the probe's time.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    try:
        connection.connect(DOCKER_SOCKET)
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
        return json.loads(body) if head.split(None, 2)[1:2] == [b"200"] else None
    except (OSError, ValueError):
        return None
    finally:
        connection.close()


def compose_command() -> list[str]:
    """Compose by its own name where it lies in a usual place: twice as fast as through docker.

    Not from a user's home: the units run it as root.
    """
    if shutil.which("docker"):
        for base in COMPOSE_PLACES:
            program = f"{base}/docker/cli-plugins/docker-compose"
            if os.access(program, os.X_OK):
                return [program, "version", "--short"]
    return ["docker", "compose", "version", "--short"]


def nearest(path: str) -> str:
    """The path itself, or its nearest parent that exists: where its files will lie."""
    current = Path(path)
    while not current.exists():
        current = current.parent
    return str(current)


def disk(path: str) -> dict[str, Any]:
    """File system below a path that may not exist yet. Sizes in bytes."""
    place = nearest(path)
    stat = os.statvfs(place)
    return {
        "device": Path(place).stat().st_dev,
        "free": stat.f_bavail * stat.f_frsize,
        "exists": place == path,
        "read_only": bool(stat.f_flag & os.ST_RDONLY),
    }


def memory() -> dict[str, int]:
    """MemTotal and MemAvailable in bytes. GB10 has no other honest figure of its memory."""
    values = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        key, _, rest = line.partition(":")
        if key in ("MemTotal", "MemAvailable"):
            values[key] = int(rest.split()[0]) * 1024
    return {"total": values.get("MemTotal", 0), "available": values.get("MemAvailable", 0)}


def clock_synchronised() -> bool:
    """As timedatectl decides it (adjtimex, maximum error below 16 s), or timesyncd's own mark."""
    if Path("/run/systemd/timesync/synchronized").exists():
        return True
    timex = (ctypes.c_long * 32)()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return False
    return state >= 0 and timex[3] < 16_000_000


def listening() -> dict[int, str]:
    """TCP ports in the listening state -> inode of the socket."""
    ports: dict[int, str] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A":
                ports[int(fields[1].rsplit(":", 1)[1], 16)] = fields[9]
    return ports


def owners(inodes: set[str]) -> dict[str, dict[str, str]]:
    """Socket inode -> command name and control group of the process that holds it."""
    found: dict[str, dict[str, str]] = {}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if not target.startswith("socket:[") or target[8:-1] not in inodes:
            continue
        process = link.parent.parent
        try:
            found[target[8:-1]] = {
                "command": Path(process, "comm").read_text().strip(),
                "cgroup": Path(process, "cgroup").read_text(),
            }
        except OSError:
            continue
        if len(found) == len(inodes):
            break
    return found


def digest(path: Path) -> str | None:
    """sha256 of a small managed file; None when it is not there."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def managed(place: Path) -> str | None:
    """``sha256 mode`` of a file; None when it is not there."""
    found = digest(place)
    return found and f"{found} {place.stat().st_mode & 0o777:o}"


def units(shown: str) -> dict[str, dict[str, str]]:
    """systemd's view of our units, by name, from what ``systemctl show`` printed."""
    found = {}
    for block in shown.strip().split("\n\n"):
        fields = properties(block)
        if "Id" in fields:
            found[fields["Id"]] = fields
    return found


def properties(text: str) -> dict[str, str]:
    """``Key=value`` lines."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def service_state(service: dict[str, str]) -> dict[str, Any]:
    """Files, container and times of one of our services."""
    home = Path(service["home"])
    current = home / "current"
    release = current.readlink().name if current.is_symlink() else None
    good = home / "good"
    container = docker(f"/containers/sparkwright-{service['name']}/json")
    secrets = home / "secrets.env"
    unit_path = Path("/etc/systemd/system", service["unit"])
    stat = secrets.stat() if secrets.exists() else None
    return {
        "current": release,
        "good": good.readlink().name if good.is_symlink() else None,
        "compose": digest(home / "releases" / service["release"] / "compose.yaml"),
        "unit": digest(unit_path),
        "secrets": digest(secrets),
        "secrets_mode": f"{stat.st_mode & 0o777:o} {stat.st_uid}" if stat else None,
        "newest": max(
            (path.stat().st_mtime for path in (secrets, unit_path) if path.exists()), default=0.0
        ),
        "container": container
        and {
            "id": container["Id"],
            "running": container["State"]["Running"],
            "created": container["Created"],
            "release": container["Config"]["Labels"].get("sparkwright.release"),
            "image": container["Config"]["Image"],
        },
    }


def ports(wanted: list[int]) -> dict[str, dict[str, Any]]:
    """Those of the wanted ports that something listens on, and what does."""
    taken = {port: inode for port, inode in listening().items() if port in wanted}
    holders = owners(set(taken.values())) if taken else {}
    found: dict[str, dict[str, Any]] = {}
    for port, inode in taken.items():
        holder = holders.get(inode, {"command": "unknown", "cgroup": ""})
        found[str(port)] = {**holder, "container": container_at(port, holder)}
    return found


def container_at(port: int, holder: dict[str, str]) -> str | None:
    """``name restart-policy`` of the container that listens on a port; None where it is none."""
    match = re.search(r"docker[-/]([0-9a-f]{64})", holder["cgroup"])
    name = match[1] if match else None
    if holder["command"] == "docker-proxy":
        name = next(
            (
                one["Id"]
                for one in docker("/containers/json") or []
                if any(place.get("PublicPort") == port for place in one["Ports"])
            ),
            None,
        )
    seen = docker(f"/containers/{name}/json") if name else None
    if not seen:
        return None
    return f"{seen['Name'].lstrip('/')} {seen['HostConfig']['RestartPolicy']['Name'] or 'no'}"


def as_root(request: dict[str, Any]) -> dict[str, Any]:
    """What only root may see: managed files, Docker, who listens on which port."""
    names = [*(service["unit"] for service in request["services"]), *request["units"]]
    shown = Running(["systemctl", "show", "-p", UNIT_FIELDS, *names]) if names else None
    state = Path(request["services_root"], "state")
    gpu_check = state / "gpu-check.json"
    docker_info = docker("/info")
    answer: dict[str, Any] = {
        "images": {name: docker(f"/images/{name}/json") is not None for name in request["images"]},
        "models": {
            model["directory"]: receipt.check(model["directory"], model["commit"])
            for model in request["models"]
        },
        "partial": {
            model["directory"]: partial(Path(model["directory"])) for model in request["models"]
        },
        # Images whose parts are kept for other hosts.
        "stores": [
            store["directory"]
            for store in request["stores"]
            if receipt.check(store["directory"], store["digest"]) is None
        ],
        "runtimes": sorted(
            path.name for path in Path(request["services_root"], "runtime").glob("*")
        ),
        "ports": ports(request["ports"]),
        "files": {path: managed(Path(path)) for path in request["files"]},
        "services": {service["name"]: service_state(service) for service in request["services"]},
        "directories": {path: directory(path) for path in request["directories"]},
        "unit_files": sorted(
            path.name for path in Path("/etc/systemd/system").glob("sparkwright-*.service")
        ),
        "lock": read_lock(state / "lock.json"),
        "last_lock": (read_lock(state / "lock-last.json") or {}).get("token"),
        "switching": switching(state),
        "gpu_check": gpu_check.read_text() if gpu_check.exists() else None,
        "units": units(shown.outcome()["out"]) if shown else {},
    }
    answer["docker"] = docker_info and {
        "version": docker_info.get("ServerVersion"),
        "root": docker_info.get("DockerRootDir"),
        "runtimes": sorted(docker_info.get("Runtimes") or {}),
        "driver": docker_info.get("Driver"),
    }
    if docker_info:
        answer["docker_disk"] = disk(docker_info["DockerRootDir"])
    return answer


def read_lock(place: Path) -> dict[str, Any] | None:
    """Who holds this host, or held it last (roles/lock/host/lock.py)."""
    try:
        return dict(json.loads(place.read_text()))
    except (OSError, ValueError):
        return None


def switching(state: Path) -> bool:
    """Whether a switch to other releases is under way: its journal has no end yet."""
    try:
        journal = json.loads((state / "switch/progress.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(journal.get("step") != "ended")


def partial(place: Path) -> int:
    """Bytes on the disk of a model that is not whole yet; its stage lies beside it."""
    stage = place.with_name(f".staging-{place.name}")
    return sum(
        file.lstat().st_blocks * 512
        for folder in (stage, place)
        if stage.is_dir() and folder.is_dir()
        for file in folder.rglob("*")
    )


def directory(path: str) -> str | None:
    """``mode uid`` of a directory, ``not a directory``, or None when it is not there."""
    place = Path(path)
    try:
        stat = place.stat()
    except OSError:
        return None
    return f"{stat.st_mode & 0o7777:o} {stat.st_uid}" if place.is_dir() else "not a directory"


def may_use_docker(user: str) -> bool:
    """Whether a login of this user may talk to Docker without sudo."""
    try:
        account = pwd.getpwnam(user)
        place = Path(DOCKER_SOCKET).stat()
    except (KeyError, OSError):
        return False
    if account.pw_uid in (0, place.st_uid):
        return True
    groups = os.getgrouplist(user, account.pw_gid)
    return bool(place.st_mode & (0o020 if place.st_gid in groups else 0o002))


def why_no_sudo() -> str:
    """sudo's own words; the probe runs as root wherever they are none."""
    outcome = Running(["sudo", "-n", "true"]).outcome()
    if not outcome["found"]:
        return "sudo is not installed"
    said = outcome["err"].strip().splitlines()
    return said[-1] if said else "sudo failed"


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Answer the request; see sparkwright/probe.py for the answer's shape."""
    root = os.geteuid() == 0
    query = f"--query-gpu={','.join(request['gpu_fields'])}"
    gpu = Running(["nvidia-smi", query, "--format=csv,noheader"])
    toolkit = Running(["nvidia-ctk", "--version"])
    compose = Running(compose_command())
    manager = Running(["systemctl", "show", "-p", "Version", "-p", "SystemState"])
    user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    answer: dict[str, Any] = {
        "time": time.time(),
        "user": user,
        "python": [sys.version_info.major, sys.version_info.minor],
        "architecture": os.uname().machine,
        "kernel": os.uname().release,
        "clock_synchronised": clock_synchronised(),
        "memory": memory(),
        "disks": {path: disk(path) for path in (request["models_root"], request["services_root"])},
        "docker_socket": may_use_docker(user),
        "docker_found": shutil.which("docker") is not None,
        "sudo": None if root else why_no_sudo(),
        **(as_root(request) if root else {}),
        "gpu": gpu.outcome(),
        "toolkit": toolkit.outcome(),
        "compose": compose.outcome(),
        "systemd": properties(manager.outcome()["out"]),
    }
    match = re.match(r"\d+", answer["systemd"].get("Version", ""))
    answer["systemd_version"] = int(match[0]) if match else None
    return answer
