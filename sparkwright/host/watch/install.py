"""Puts the watch on this host, or takes it away. Runs as root."""

from __future__ import annotations

import shutil
from pathlib import Path

from sparkwright.host.lib import systemd, trusted
from sparkwright.host.lib.records import dataclass, field


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


def main(request: WatchInstallRequest) -> list[str]:
    """Make it so. Returns the changes."""
    if not request.files:
        systemd.systemctl("stop", request.timer, request.service)
        systemd.want_at_boot(request.timer, wanted=False)
        for name in (request.timer, request.service):
            (systemd.UNITS / name).unlink(missing_ok=True)
        shutil.rmtree(request.home, ignore_errors=True)
        return ["removed the watch"]
    trusted.take_over(Path(request.home, "metrics"))
    systemd.write_files(request.files)
    systemd.want_at_boot(request.timer, wanted=True)
    # A unit that failed while its files were away refuses to start until that is forgotten.
    systemd.systemctl("reset-failed", request.timer, request.service)
    systemd.start(request.timer)
    return ["configured the watch"]
