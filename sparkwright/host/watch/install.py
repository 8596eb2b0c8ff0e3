"""Install or remove the watch on this host, as root."""

import shutil
from pathlib import Path

from sparkwright.host.lib import records, systemd, trusted


@records.dataclass(frozen=True)
class WatchInstallRequest:
    """Files required for the watch; without files, the watch is removed.

    Attributes:
        files: path -> text and mode.
        timer, service: names of the watch's units.
    """

    home: str
    timer: str
    service: str
    files: dict[str, tuple[str, int]] = records.field(default_factory=dict)


def main(request: WatchInstallRequest) -> list[str]:
    """Apply the request. Returns the changes."""
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
    # A unit that failed while its files were missing does not start until its failure is reset.
    systemd.systemctl("reset-failed", request.timer, request.service)
    systemd.start(request.timer)
    return ["configured the watch"]
