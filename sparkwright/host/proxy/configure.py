"""Puts HAProxy's files in place and has it read them, without cutting anyone off.

Runs on the host as root (roles/remote.py). Request: {"files": {path: [text, mode]}, "unit",
"health": its unit or null, "config": path of haproxy.cfg, "admin": socket, "states": path,
"keep": [[backend, server, address, port, check port]], "start": whether what is not running is
started now}. An empty "files" takes everything away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from sparkwright.host.lib import files
from sparkwright.host.proxy import runtime_api as haproxy

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


def active(unit: str) -> bool:
    """Whether a unit runs."""
    return command("systemctl", "is-active", unit).stdout.strip() == "active"


def reload(request: dict[str, Any]) -> None:
    """Have a running HAProxy read its files again."""
    states = Path(request["states"])
    try:
        answer = haproxy.ask(request["admin"], haproxy.STATES)
        states.write_text(haproxy.kept(answer, request["keep"]))
    except (OSError, ValueError, KeyError):
        states.unlink(missing_ok=True)
    done = command("systemctl", "reload", request["unit"])
    time.sleep(0.2)
    states.unlink(missing_ok=True)
    if done.returncode != 0:
        raise SystemExit(f"systemctl reload {request['unit']}: {done.stderr.strip()}")


def main(request: dict[str, Any]) -> list[str]:
    """Make it so. Returns what was done."""
    wanted, unit, health = request["files"], request["unit"], request["health"]
    if not wanted:
        command("systemctl", "disable", "--quiet", "--now", unit, "sparkwright-health.service")
        for path in (unit, "sparkwright-health.service"):
            Path("/etc/systemd/system", path).unlink(missing_ok=True)
        shutil.rmtree(Path(request["config"]).parent, ignore_errors=True)
        command("systemctl", "daemon-reload")
        return ["removed the door"]
    install()
    changed = {path for path, (text, mode) in wanted.items() if files.write(Path(path), text, mode)}
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
