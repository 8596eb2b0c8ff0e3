"""Install or remove the program of an address for all models. The program runs as root."""

import os
import shutil
from pathlib import Path

from sparkwright.host.lib import records, systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.models.document import PAGE, PAGE_DATA, USAGE

#: Units: the socket to which HAProxy passes requests, and the program.
SOCKET, SERVICE = "sparkwright-models.socket", "sparkwright-models.service"
#: The program's user, for systemd-sysusers.
USERS = Path("/etc/sysusers.d/sparkwright-models.conf")


@records.dataclass(frozen=True)
class AddressRequest:
    """Files required for the address; without files, the installation is removed.

    Attributes:
        home: directory of the program and its document.
        files: path -> text and mode.
        pools: directory of HAProxy's socket of pools, open to root and the program's user.
        user: user that the program runs as.
    """

    home: str
    files: dict[str, tuple[str, int]] = records.field(default_factory=dict)
    pools: str = ""
    user: str = ""


def main(request: AddressRequest) -> list[str]:
    """Apply the request. Requests under way are finished, even if the program is new.

    Raises:
        SystemExit: systemd can't make the user, or the program refuses its document.
    """
    if not request.files:
        left = remove()
        shutil.rmtree(request.home, ignore_errors=True)
        return ["removed the address for all models", *(f"left {item}" for item in left)]
    changed = systemd.write_files(request.files)
    written = len(changed)
    _demand("systemd-sysusers", str(USERS))
    _demand("python3", "-IB", f"{request.home}/serve.py", f"{request.home}/models.json", "--check")
    pools = Path(request.pools)
    if pools.parent.is_dir():  # HAProxy runs: its unit makes the directories only at a start
        pools.parent.chmod(0o711)
        _demand("install", "-d", "-m", "0750", "-g", request.user, request.pools)
    changed = _page(request, changed)
    systemd.want_at_boot(SOCKET, wanted=True)
    if str(systemd.UNITS / SOCKET) in changed:
        systemd.systemctl("stop", SERVICE)  # a socket can't restart while its service runs
        systemd.systemctl("restart", SOCKET)
        systemd.start(SERVICE)
    else:
        systemd.start(SOCKET)
        if changed - {f"{request.home}/models.json"}:
            systemd.systemctl("try-restart", SERVICE)
        elif changed:
            systemd.systemctl("reload", SERVICE)
    return [f"wrote {written} files of the address for all models"]


def _page(request: AddressRequest, changed: set[str]) -> set[str]:
    """Run Open WebUI if its unit is among the files; otherwise remove it and keep its data. Returns
    the changed files that are not Open WebUI's.
    """
    own = {path for path in changed if "open-webui" in path}
    if str(systemd.UNITS / PAGE) in request.files:
        systemd.want_at_boot(PAGE, wanted=True)
        if own:
            systemd.systemctl("stop", PAGE)
        systemd.start(PAGE)
    elif (systemd.UNITS / PAGE).exists():
        systemd.remove([PAGE])
        shutil.rmtree(f"{request.home}/open-webui", ignore_errors=True)
    return changed - own


def remove() -> list[str]:
    """Remove the units and the user, and give the usage of API keys to root. Returns the remaining
    paths.
    """
    left = []
    if (systemd.UNITS / PAGE).exists():
        systemd.remove([PAGE])
    if Path(PAGE_DATA).is_dir():
        left.append(f"{PAGE_DATA}: accounts, chats and files of Open WebUI")
    if USERS.exists():
        # Stop a program that is finishing its answers, too: its user can't be removed earlier.
        systemd.systemctl("kill", "--signal=KILL", SERVICE)
        systemd.remove([SOCKET, SERVICE])
        done = run("userdel", USERS.stem)
        left += [] if done.ok else [f"the user {USERS.stem}: {done.err.strip()}"]
        USERS.unlink()
    usage = Path(USAGE)
    if usage.exists():
        for path in (usage.parent, *usage.parent.iterdir()):
            os.lchown(path, 0, 0)  # another user may get this uid later
        left.append(f"{usage}: the use of API keys (delete the file if nobody needs it)")
    return left


def _demand(*command: str) -> None:
    done = run(*command)
    if not done.ok:
        raise SystemExit(f"{command[0]}: {done.err.strip()}")
