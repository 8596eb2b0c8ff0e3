"""Installs the distribution's HAProxy, from its servers or from packages that are brought.

Runs on the host as root.
"""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

from sparkwright.host.contracts.proxies import InstallRequest
from sparkwright.host.lib import systemd
from sparkwright.host.lib.processes import run

HAPROXY = "/usr/sbin/haproxy"
_INSTALL = ("apt-get", "install", "-qq", "--yes", "--no-install-recommends")
_ENVIRONMENT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def install() -> None:
    """The distribution's HAProxy, whose own service is not wanted."""
    if Path(HAPROXY).exists():
        return
    done = run(*_INSTALL, "haproxy", environment=_ENVIRONMENT)
    if not done.ok:
        run("apt-get", "update", "-qq", environment=_ENVIRONMENT)
        done = run(*_INSTALL, "haproxy", environment=_ENVIRONMENT)
    if not done.ok:
        raise SystemExit(f"apt-get install haproxy: {done.said}")
    systemd.disable("haproxy.service")


def install_brought(packages: dict[str, str]) -> None:
    """The same from packages that came with the request; apt-get refuses those of another system
    before it changes anything."""
    with tempfile.TemporaryDirectory(prefix="sparkwright-packages-") as folder:
        wanted = []
        for name, content in packages.items():
            place = Path(folder, Path(name).name)
            place.write_bytes(base64.b64decode(content))
            if not _newer_is_there(place):
                wanted.append(str(place))
        # apt's own user reads them; the folder is removed at the end.
        Path(folder).chmod(0o755)
        done = run(*_INSTALL, "--no-download", *wanted, environment=_ENVIRONMENT)
    if not done.ok or not Path(HAPROXY).exists():
        raise SystemExit(f"the bundle's packages of HAProxy do not fit this host: {done.said}")
    systemd.disable("haproxy.service")


def _newer_is_there(place: Path) -> bool:
    """Whether a package is installed in this version or a later one."""
    words = run("dpkg-deb", "-f", str(place), "Package").out.split()
    version = run("dpkg-deb", "-f", str(place), "Version").out.strip()
    name = words[-1] if words else ""
    form = "${db:Status-Status} ${Version}"
    state, _, there = run("dpkg-query", "-W", "-f", form, name).out.partition(" ")
    return state == "installed" and run("dpkg", "--compare-versions", there, "ge", version).ok


def main(request: InstallRequest) -> list[str]:
    """Make it so. Returns what was done."""
    if Path(HAPROXY).exists():
        return []
    if request.packages:
        install_brought(request.packages)
    else:
        install()
    return ["installed HAProxy"]
