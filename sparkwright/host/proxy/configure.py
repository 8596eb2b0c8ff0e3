"""Puts HAProxy's files in place and has it read them, without cutting anyone off.

Runs on the host as root.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from sparkwright.host.lib import files, systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.proxy import asleep
from sparkwright.host.proxy import runtime_api as haproxy
from sparkwright.host.proxy.install import HAPROXY, install
from sparkwright.host.proxy.pool import HEALTH_UNIT, ProxyRequest

#: Beside the configuration: the keys of versions before 0.2, without names.
FORMER_KEYS = "keys"


def reload(request: ProxyRequest) -> None:
    """Have a running HAProxy read its files again."""
    states = Path(request.states)
    try:
        answer = haproxy.ask(request.admin, haproxy.STATES)
        states.write_text(haproxy.kept(answer, request.keep))
    except (OSError, ValueError, KeyError):
        states.unlink(missing_ok=True)
    done = systemd.systemctl("reload", request.unit)
    time.sleep(0.2)
    states.unlink(missing_ok=True)
    if not done.ok:
        raise SystemExit(f"systemctl reload {request.unit}: {done.err.strip()}")


def remove(request: ProxyRequest) -> list[str]:
    """Take everything away."""
    systemd.remove([request.unit, HEALTH_UNIT])
    shutil.rmtree(Path(request.config).parent, ignore_errors=True)
    return ["removed the proxy"]


def main(request: ProxyRequest) -> list[str]:
    """Make it so. Returns what was done."""
    if not request.files:
        return remove(request)
    install()
    changed = {
        path for path, (text, mode) in request.files.items() if files.write(Path(path), text, mode)
    }
    if request.asleep:
        asleep.write(Path(request.asleep))
    wrong = run(HAPROXY, "-c", "-q", "-f", request.config)
    if not wrong.ok:
        raise SystemExit(f"haproxy refuses its configuration: {wrong.err.strip()}")
    if any(path.endswith(".service") for path in changed):
        systemd.reload()
    units = [one for one in (request.health, request.unit) if one]
    if not request.health:
        systemd.disable(HEALTH_UNIT)
    if request.start:
        systemd.systemctl("enable", "--quiet", *units)
    renewed = any("health" in path or path.endswith(".py") for path in changed)
    if request.health and renewed and systemd.is_active(request.health):
        systemd.systemctl("restart", request.health)
    if request.start and changed and systemd.is_active(request.unit):
        reload(request)
    if request.start:
        systemd.start(*units)
    for place in Path(request.config).parent.glob("tls/*"):
        if str(place) not in request.files:  # no key stays when TLS is turned off
            place.unlink()
    former = Path(request.config).with_name(FORMER_KEYS)
    if str(former) not in request.files:
        former.unlink(missing_ok=True)
    return [f"wrote {len(changed)} files of the proxy"]
