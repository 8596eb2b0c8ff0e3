"""Puts the watch on this host, or takes it away. Runs as root."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import documents, files, systemd, trusted


@dataclass(frozen=True)
class WatchInstallRequest:
    """The watch's files as they must be; without files it is taken away.

    Attributes:
        files: path -> text and mode.
        timer, service: its units.
    """

    home: str
    timer: str
    service: str
    files: dict[str, tuple[str, int]] = field(default_factory=dict)


def remove(request: WatchInstallRequest) -> list[str]:
    """Take it away."""
    systemd.systemctl("stop", request.timer, request.service)
    wants = systemd.UNITS / systemd.TIMERS
    for place in (wants / request.timer, *(systemd.UNITS / one for one in _units(request))):
        place.unlink(missing_ok=True)
    shutil.rmtree(request.home, ignore_errors=True)
    return ["removed the watch"]


def main(request: WatchInstallRequest) -> list[str]:
    """Make it so. Returns what was done."""
    if not request.files:
        return remove(request)
    trusted.take_over(Path(request.home, "metrics"))
    known = [documents.text(systemd.UNITS / one) for one in _units(request)]
    for path, (text, mode) in request.files.items():
        files.write(Path(path), text, mode)
    now = [documents.text(systemd.UNITS / one) for one in _units(request)]
    if any(before not in (None, after) for before, after in zip(known, now, strict=True)):
        systemd.reload()
    systemd.enable_timer(request.timer)
    systemd.start(request.timer)
    return ["configured the watch"]


def _units(request: WatchInstallRequest) -> tuple[str, str]:
    return request.timer, request.service
