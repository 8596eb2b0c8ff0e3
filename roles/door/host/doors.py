"""Puts HAProxy's files in place and has it read them, without cutting anyone off.

Runs on the host as root (roles/remote.py). Request: {"files": {path: [text, mode]}, "unit",
"health": its unit or null, "config": path of haproxy.cfg, "admin": socket, "states": path,
"keep": [[backend, server, address, port, check port]], "start": whether what is not running is
started now}. An empty "files" takes everything away.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

HAPROXY = "/usr/sbin/haproxy"


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


def install() -> None:
    """The distribution's HAProxy, whose own service is not wanted."""
    if Path(HAPROXY).exists():
        return
    install = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "haproxy"]
    done = command(*install)
    if done.returncode != 0:
        command("apt-get", "update", "-qq")
        done = command(*install)
    if done.returncode != 0:
        raise SystemExit(f"apt-get install haproxy: {done.stderr.strip().splitlines()[-1]}")
    command("systemctl", "disable", "--quiet", "--now", "haproxy.service")


def write(place: Path, text: str, mode: int) -> bool:
    """Write a file that was never readable by others meanwhile. Returns whether it changed."""
    if place.is_file() and place.read_text() == text and place.stat().st_mode & 0o777 == mode:
        return False
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    temporary.replace(place)
    return True


def ask(place: str, line: str) -> str:
    """What HAProxy's runtime API says."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(place)
        connection.sendall(f"{line}\n".encode())
        with connection.makefile("r") as answer:
            return answer.read()


def kept(answer: str, keep: list[list[str]]) -> str:
    """Who is drained or down, of the servers that stay where they are: HAProxy would take the
    port of another from there (haproxy/haproxy#3296)."""
    version, _, rest = answer.strip().partition("\n")
    head, *rows = rest.splitlines()
    names = head.removeprefix("# ").split()
    stay = []
    for row in rows:
        field = dict(zip(names, row.split(), strict=False))
        for backend, server, address, port, check in keep:
            same = [field["be_name"], field["srv_name"], field["srv_port"], field["srv_check_port"]]
            at = (field["srv_addr"], field["srv_fqdn"])
            if same == [backend, server, port, check] and address in at:
                stay.append(row)
    return "\n".join([version, head, *stay, ""])


def active(unit: str) -> bool:
    """Whether a unit runs."""
    return command("systemctl", "is-active", unit).stdout.strip() == "active"


def reload(request: dict[str, Any]) -> None:
    """Have a running HAProxy read its files again."""
    states = Path(request["states"])
    try:
        states.write_text(kept(ask(request["admin"], "show servers state"), request["keep"]))
    except (OSError, ValueError, KeyError):
        states.unlink(missing_ok=True)
    done = command("systemctl", "reload", request["unit"])
    time.sleep(0.2)
    states.unlink(missing_ok=True)
    if done.returncode != 0:
        raise SystemExit(f"systemctl reload {request['unit']}: {done.stderr.strip()}")


def main(request: dict[str, Any]) -> list[str]:
    """Make it so. Returns what was done."""
    files, unit, health = request["files"], request["unit"], request["health"]
    if not files:
        command("systemctl", "disable", "--quiet", "--now", unit, "sparkwright-health.service")
        for path in (unit, "sparkwright-health.service"):
            Path("/etc/systemd/system", path).unlink(missing_ok=True)
        shutil.rmtree(Path(request["config"]).parent, ignore_errors=True)
        command("systemctl", "daemon-reload")
        return ["removed the door"]
    install()
    changed = {path for path, (text, mode) in files.items() if write(Path(path), text, mode)}
    wrong = command(HAPROXY, "-c", "-q", "-f", request["config"])
    if wrong.returncode != 0:
        raise SystemExit(f"haproxy refuses its configuration: {wrong.stderr.strip()}")
    if any(path.endswith(".service") for path in changed):
        command("systemctl", "daemon-reload")
    units = [one for one in (health, unit) if one]
    if not health:
        command("systemctl", "disable", "--quiet", "--now", "sparkwright-health.service")
    if request["start"]:
        command("systemctl", "enable", "--quiet", *units)
    if health and active(health) and any("health" in path for path in changed):
        command("systemctl", "restart", health)
    if active(unit) and changed and request["start"]:
        reload(request)
    if request["start"]:
        done = command("systemctl", "start", *units)
        if done.returncode != 0:
            raise SystemExit(f"systemctl start {' '.join(units)}: {done.stderr.strip()}")
    return [f"wrote {len(changed)} files of the door"]
