"""Makes directories with mode and owner. Runs on the host as root."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.directories import DirectoriesRequest
from sparkwright.host.lib import trusted


def main(request: DirectoriesRequest) -> None:
    """Make them. Running it twice changes nothing."""
    for one in request.directories:
        place = Path(one.path)
        if place.is_symlink() and not place.exists():
            raise SystemExit(
                f"{one.path} is a link that leads nowhere: remove it or repair its target"
            )
        if place.exists() and not place.is_dir():
            raise SystemExit(f"{one.path} is not a directory: move it away")
        trusted.set_up(place, one.uid, one.mode)
