"""Puts the watch on this host, or takes it away. Runs as root (roles/remote.py).

Request: {"files": {path: [text, mode]}, "home", "timer", "service"}; no files take it away.

systemd is only told to read its files again when it knows an older text of them: a reload can take
the GPU from running containers, and a new unit needs none. So the link that enables the timer is
made here: `systemctl enable` reloads, and with --no-reload it marks every unit as changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_UNITS = Path("/etc/systemd/system")
_WANTS = "timers.target.wants"


def command(*words: str) -> None:
    """Run a command; its failure is this program's."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")


def write(place: Path, text: str, mode: int) -> bool:
    """Write a file in one step. Returns whether another text was there before."""
    before = place.read_text() if place.is_file() else None
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    temporary.replace(place)
    return before not in (None, text)


def enable(timer: str) -> None:
    """Have it started at boot."""
    link = _UNITS / _WANTS / timer
    link.parent.mkdir(mode=0o755, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(_UNITS / timer)


def main(request: dict[str, Any]) -> list[str]:
    """Make it so. Returns what was done."""
    timer, service = request["timer"], request["service"]
    if not request["files"]:
        command("systemctl", "stop", timer, service)
        for place in (_UNITS / _WANTS / timer, _UNITS / timer, _UNITS / service):
            place.unlink(missing_ok=True)
        shutil.rmtree(request["home"], ignore_errors=True)
        return ["removed the watch"]
    files = request["files"]
    Path(request["home"], "metrics").mkdir(mode=0o755, parents=True, exist_ok=True)
    changed = {path for path, (text, mode) in files.items() if write(Path(path), text, mode)}
    if any(Path(path).parent == _UNITS for path in changed):
        command("systemctl", "daemon-reload")
    enable(timer)
    command("systemctl", "start", timer)
    return ["told the watch what to expect"]
