"""Installs the distribution's HAProxy, from its servers or from packages that are brought.

Runs on the host as root.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from sparkwright.host.lib import apt, systemd
from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class InstallRequest:
    """HAProxy on a host that has none.

    Attributes:
        packages: by file name, in base64, where a bundle brings them.
        environment: of apt-get, such as ``http_proxy``.
    """

    packages: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


HAPROXY = "/usr/sbin/haproxy"
_INSTALL = ("install", "-qq", "--yes", "--no-install-recommends")


def _brought(packages: dict[str, str]) -> Outcome:
    """Install packages of the request; apt-get refuses another system's packages before it changes
    anything.
    """
    with tempfile.TemporaryDirectory(prefix="sparkwright-packages-") as folder:
        wanted = []
        for name, content in packages.items():
            file = Path(folder, Path(name).name)
            file.write_bytes(base64.b64decode(content))
            if not _newer_is_there(file):
                wanted.append(str(file))
        # apt's own user reads them; the folder is removed at the end.
        Path(folder).chmod(0o755)
        return apt.get(*_INSTALL, "--no-download", *wanted, environment={})


def _newer_is_there(path: Path) -> bool:
    """Whether a package is installed in this version or a later one."""
    lines = run("dpkg-deb", "-f", str(path), "Package").out.split()
    version = run("dpkg-deb", "-f", str(path), "Version").out.strip()
    name = lines[-1] if lines else ""
    form = "${db:Status-Status} ${Version}"
    state, _, present = run("dpkg-query", "-W", "-f", form, name).out.partition(" ")
    return state == "installed" and run("dpkg", "--compare-versions", present, "ge", version).ok


def main(request: InstallRequest) -> list[str]:
    """Have the distribution's HAProxy, whose own service is not wanted. Returns what was done."""
    if Path(HAPROXY).exists():
        return []
    if request.packages:
        done = _brought(request.packages)
        if not done.ok or not Path(HAPROXY).exists():
            raise SystemExit(
                f"the bundle's packages of HAProxy do not fit this host: {done.message}"
            )
    else:
        done = apt.get(*_INSTALL, "haproxy", environment=request.environment)
        if not done.ok:
            apt.get("update", "-qq", environment=request.environment)
            done = apt.get(*_INSTALL, "haproxy", environment=request.environment)
        if not done.ok:
            raise SystemExit(f"apt-get install haproxy: {done.message}")
    systemd.disable("haproxy.service")
    return ["installed HAProxy"]
