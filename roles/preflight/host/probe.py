"""Reads everything the roles need to know of a host, in one go; changes nothing.

Runs on the host (see roles/remote.py). Every question that can't be answered is answered with
None or with the failing command's own words, never with an exception: a probe that dies tells
nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import http.client
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from roles.weights.host import receipt

DOCKER_SOCKET = "/var/run/docker.sock"


def run(argv: list[str], timeout: float = 10) -> dict[str, Any]:
    """A command's outcome; ``code`` is None when it hung, ``found`` False when it is not there."""
    if shutil.which(argv[0]) is None:
        return {"found": False, "code": None, "out": "", "err": ""}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return {"found": True, "code": None, "out": "", "err": f"no answer within {timeout:.0f} s"}
    return {"found": True, "code": done.returncode, "out": done.stdout, "err": done.stderr}


class _DockerConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(DOCKER_SOCKET)


def docker(path: str) -> Any:
    """One GET of Docker's API: decoded JSON, or None when Docker or the object is not there."""
    connection = _DockerConnection("docker")
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        return json.loads(body) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


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


def units(names: list[str]) -> dict[str, dict[str, str]]:
    """systemd's view of our units, by name."""
    if not names:
        return {}
    wanted = "Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,NeedDaemonReload"
    answer = run(["systemctl", "show", "-p", wanted, *names])
    shown = {}
    for block in answer["out"].strip().split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in fields:
            shown[fields["Id"]] = fields
    return shown


def service_state(service: dict[str, str]) -> dict[str, Any]:
    """Files, container and times of one of our services."""
    home = Path(service["home"])
    current = home / "current"
    release = current.readlink().name if current.is_symlink() else None
    container = docker(f"/containers/sparkwright-{service['name']}/json")
    secrets = home / "secrets.env"
    unit_path = Path("/etc/systemd/system", service["unit"])
    stat = secrets.stat() if secrets.exists() else None
    return {
        "current": release,
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


def ports(wanted: list[int]) -> dict[str, dict[str, str]]:
    """Those of the wanted ports that something listens on, and what does."""
    taken = {port: inode for port, inode in listening().items() if port in wanted}
    holders = owners(set(taken.values())) if taken else {}
    return {
        str(port): holders.get(inode, {"command": "unknown", "cgroup": ""})
        for port, inode in taken.items()
    }


def as_root(request: dict[str, Any]) -> dict[str, Any]:
    """What only root may see: managed files, Docker, who listens on which port."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        info = pool.submit(docker, "/info")
        unit_states = pool.submit(units, [service["unit"] for service in request["services"]])
        gpu_check = Path(request["services_root"], "state", "gpu-check.json")
        answer: dict[str, Any] = {
            "images": {
                name: docker(f"/images/{name}/json") is not None for name in request["images"]
            },
            "models": {
                model["directory"]: receipt.check(model["directory"], model["commit"])
                for model in request["models"]
            },
            "runtimes": sorted(
                path.name for path in Path(request["services_root"], "runtime").glob("*")
            ),
            "ports": ports([int(service["port"]) for service in request["services"]]),
            "services": {
                service["name"]: service_state(service) for service in request["services"]
            },
            "directories": {path: directory(path) for path in request["directories"]},
            "unit_files": sorted(
                path.name for path in Path("/etc/systemd/system").glob("sparkwright-*.service")
            ),
            "gpu_check": gpu_check.read_text() if gpu_check.exists() else None,
        }
        docker_info = info.result()
        answer["units"] = unit_states.result()
    answer["docker"] = docker_info and {
        "version": docker_info.get("ServerVersion"),
        "root": docker_info.get("DockerRootDir"),
        "runtimes": sorted(docker_info.get("Runtimes") or {}),
        "driver": docker_info.get("Driver"),
    }
    if docker_info:
        answer["docker_disk"] = disk(docker_info["DockerRootDir"])
    return answer


def directory(path: str) -> str | None:
    """``mode uid`` of a directory, ``not a directory``, or None when it is not there."""
    place = Path(path)
    try:
        stat = place.stat()
    except OSError:
        return None
    return f"{stat.st_mode & 0o7777:o} {stat.st_uid}" if place.is_dir() else "not a directory"


def by_sudo(request: dict[str, Any]) -> dict[str, Any]:
    """The root part, by running this program once more through sudo; says why sudo would not."""
    if shutil.which("sudo") is None:
        return {"sudo": "sudo is not installed"}
    payload = {**sys.modules["__main__"].PAYLOAD, "request": {**request, "root_only": True}}
    done = subprocess.run(
        ["sudo", "-n", *sys.orig_argv],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode != 0:
        return {
            "sudo": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "sudo failed"
        }
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Answer the request; see sparkwright/probe.py for the answer's shape."""
    if request.get("root_only"):
        return as_root(request)
    with ThreadPoolExecutor(max_workers=8) as pool:
        root = pool.submit(as_root if os.geteuid() == 0 else by_sudo, request)
        query = f"--query-gpu={','.join(request['gpu_fields'])}"
        gpu = pool.submit(run, ["nvidia-smi", query, "--format=csv,noheader"])
        toolkit = pool.submit(run, ["nvidia-ctk", "--version"])
        compose = pool.submit(run, ["docker", "compose", "version", "--short"])
        manager = pool.submit(run, ["systemctl", "show", "-p", "Version", "-p", "SystemState"])
        answer: dict[str, Any] = {
            "time": time.time(),
            "user": os.environ.get("SUDO_USER") or os.environ.get("USER") or str(os.getuid()),
            "python": [sys.version_info.major, sys.version_info.minor],
            "architecture": platform.machine(),
            "kernel": platform.release(),
            "clock_synchronised": clock_synchronised(),
            "memory": memory(),
            "disks": {
                path: disk(path) for path in (request["models_root"], request["services_root"])
            },
            "docker_socket": os.access(DOCKER_SOCKET, os.R_OK | os.W_OK),
            "docker_found": shutil.which("docker") is not None,
            "sudo": None,
            "gpu": gpu.result(),
            "toolkit": toolkit.result(),
            "compose": compose.result(),
            "systemd": dict(
                line.split("=", 1) for line in manager.result()["out"].splitlines() if "=" in line
            ),
        }
        answer.update(root.result())
    match = re.match(r"\d+", answer["systemd"].get("Version", ""))
    answer["systemd_version"] = int(match[0]) if match else None
    return answer
