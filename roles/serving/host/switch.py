"""Puts releases in place and restarts what changed. Runs on the host as root (roles/remote.py).

Every file is whole or not there, ``current`` is switched in one step, and services that do not
change are not touched.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any


def write(path: str, text: str, mode: int) -> bool:
    """Write a file that was never readable by others meanwhile. Returns whether it changed."""
    place = Path(path)
    if place.is_file() and place.read_text() == text and place.stat().st_mode & 0o777 == mode:
        return False
    place.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place)
    return True


def point(link: Path, target: str) -> None:
    """Switch a link in one step."""
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def systemctl(*words: str) -> None:
    """Run systemctl; its own words are the message when it fails."""
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"systemctl {' '.join(words)}: {done.stderr.strip()}")


def main(request: dict[str, Any]) -> None:
    """``{"services": [{name, home, release, unit, files: {path: [text, mode]}, restart}]}``."""
    services = request["services"]
    units_changed = False
    for service in services:
        for path, (text, mode) in service["files"].items():
            changed = write(path, text, mode)
            units_changed = units_changed or (changed and path.endswith(".service"))
    # A reload can take the GPU from running containers: only when a unit really changed.
    if units_changed:
        systemctl("daemon-reload")
    restarting = [service for service in services if service["restart"]]
    units = [service["unit"] for service in restarting]
    if units:
        # All are stopped before any starts, so that two services can exchange their ports.
        systemctl("stop", *units)
        subprocess.run(["systemctl", "reset-failed", *units], capture_output=True, check=False)
    for service in services:
        point(Path(service["home"], "current"), f"releases/{service['release']}")
    for service in services:
        systemctl("enable", "--quiet", service["unit"])
    if units:
        systemctl("start", *units)
