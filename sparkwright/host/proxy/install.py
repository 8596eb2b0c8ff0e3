"""Install the distribution's HAProxy.

The program runs on the host as root.
"""

from pathlib import Path

from sparkwright.host.lib import apt, systemd

HAPROXY = "/usr/sbin/haproxy"
_INSTALL = ("install", "-qq", "--yes", "--no-install-recommends")


def main(request: dict[str, str]) -> list[str]:
    """Install the distribution's HAProxy and disable its own service. Returns the changes.

    Args:
        request: variables for apt-get, such as ``http_proxy``.
    """
    if Path(HAPROXY).exists():
        return []
    done = apt.get(*_INSTALL, "haproxy", environment=request)
    if not done.ok:
        apt.get("update", "-qq", environment=request)
        done = apt.get(*_INSTALL, "haproxy", environment=request)
    if not done.ok:
        raise SystemExit(f"apt-get install haproxy: {done.message}")
    systemd.disable("haproxy.service")
    return ["installed HAProxy"]
