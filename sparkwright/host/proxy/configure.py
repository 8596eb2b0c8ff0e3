"""Write HAProxy's files, and reload HAProxy without cutting off requests.

The program runs on the host as root.
"""

import shutil
import time
from pathlib import Path

from sparkwright.host.lib import processes, systemd
from sparkwright.host.proxy import install, place
from sparkwright.host.proxy.pool import HEALTH_UNIT, UNIT, ProxyRequest


def reload(request: ProxyRequest) -> None:
    """Reload a running HAProxy."""
    states = Path(request.states)
    try:
        answer = place.ask(request.admin, place.STATES)
        states.write_text(place.kept(answer, request.keep))
    except (OSError, ValueError, KeyError):
        states.unlink(missing_ok=True)
    done = systemd.systemctl("reload", UNIT)
    time.sleep(0.2)
    states.unlink(missing_ok=True)
    if not done.ok:
        raise SystemExit(f"systemctl reload {UNIT}: {done.err.strip()}")


def main(request: ProxyRequest) -> list[str]:
    """Apply the request. Returns the changes."""
    if not request.files:
        systemd.remove([UNIT, HEALTH_UNIT])
        shutil.rmtree(Path(request.config).parent, ignore_errors=True)
        return ["removed the proxy"]
    install.main({})
    changed = systemd.write_files(request.files)
    if request.asleep:
        place.write_sleeping(Path(request.asleep))
    checked = processes.run(install.HAPROXY, "-c", "-q", "-f", request.config)
    if not checked.ok:
        raise SystemExit(f"haproxy refuses its configuration: {checked.err.strip()}")
    units = (HEALTH_UNIT, UNIT) if str(systemd.UNITS / HEALTH_UNIT) in request.files else (UNIT,)
    if HEALTH_UNIT not in units:
        systemd.disable(HEALTH_UNIT)
    if request.start:
        systemd.systemctl("enable", "--quiet", *units)
    renewed = any("health" in path or path.endswith(".py") for path in changed)
    if HEALTH_UNIT in units and renewed and systemd.is_active(HEALTH_UNIT):
        systemd.systemctl("restart", HEALTH_UNIT)
    if request.start and changed and systemd.is_active(UNIT):
        reload(request)
    if request.start:
        systemd.start(*units)
    for certificate in Path(request.config).parent.glob("tls/*"):
        if str(certificate) not in request.files:  # no key stays when TLS is turned off
            certificate.unlink()
    return [f"wrote {len(changed)} files of the proxy"]
