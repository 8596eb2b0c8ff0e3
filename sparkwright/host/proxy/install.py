"""Install the distribution's HAProxy.

Runs on the host as root.
"""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.lib import apt, systemd
from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class InstallRequest:
    """Request to install HAProxy.

    Attributes:
        environment: variables for apt-get, such as ``http_proxy``.
    """

    environment: dict[str, str] = field(default_factory=dict)


HAPROXY = "/usr/sbin/haproxy"
_INSTALL = ("install", "-qq", "--yes", "--no-install-recommends")


def main(request: InstallRequest) -> list[str]:
    """Install the distribution's HAProxy and disable its own service. Returns the changes."""
    if Path(HAPROXY).exists():
        return []
    done = apt.get(*_INSTALL, "haproxy", environment=request.environment)
    if not done.ok:
        apt.get("update", "-qq", environment=request.environment)
        done = apt.get(*_INSTALL, "haproxy", environment=request.environment)
    if not done.ok:
        raise SystemExit(f"apt-get install haproxy: {done.message}")
    systemd.disable("haproxy.service")
    return ["installed HAProxy"]
