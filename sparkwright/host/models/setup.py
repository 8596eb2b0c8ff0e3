"""Installs the program of an address for all models, or removes it. Runs as root."""

from __future__ import annotations

import shutil
from pathlib import Path

from sparkwright.host.lib import systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass, field

#: Units: the socket at which HAProxy hands requests over, and the program.
SOCKET, SERVICE = "sparkwright-models.socket", "sparkwright-models.service"
#: The program's user, for systemd-sysusers.
USERS = Path("/etc/sysusers.d/sparkwright-models.conf")


@dataclass(frozen=True)
class AddressRequest:
    """The files of the address, as they must be; without any, it is taken away.

    Attributes:
        home: directory of program and document.
        files: path -> text and mode.
        pools: directory of HAProxy's socket of pools, which root and the program's user enter.
        user: the program's.
    """

    home: str
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    pools: str = ""
    user: str = ""


def main(request: AddressRequest) -> list[str]:
    """Make it so. Requests under way come to their end, also where a program is new.

    Raises:
        SystemExit: systemd can't make the user, or the program refuses its document.
    """
    if not request.files:
        systemd.remove([SOCKET, SERVICE])
        shutil.rmtree(request.home, ignore_errors=True)
        USERS.unlink(missing_ok=True)
        return ["removed the address for all models"]
    changed = systemd.write_files(request.files)
    _demand("systemd-sysusers", str(USERS))
    _demand("python3", "-IB", f"{request.home}/serve.py", f"{request.home}/models.json", "--check")
    pools = Path(request.pools)
    if pools.parent.is_dir():  # HAProxy runs: at its next start its unit does the same
        pools.parent.chmod(0o711)
        _demand("install", "-d", "-m", "0750", "-g", request.user, request.pools)
    systemd.want_at_boot(SOCKET, wanted=True)
    if str(systemd.UNITS / SOCKET) in changed:
        systemd.systemctl("restart", SOCKET)
    systemd.start(SOCKET)
    if changed - {f"{request.home}/models.json"}:
        systemd.systemctl("try-restart", SERVICE)
    elif changed:
        systemd.systemctl("reload", SERVICE)
    return [f"wrote {len(changed)} files of the address for all models"]


def _demand(*command: str) -> None:
    done = run(*command)
    if not done.ok:
        raise SystemExit(f"{command[0]}: {done.err.strip()}")
