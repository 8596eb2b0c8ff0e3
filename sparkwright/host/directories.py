"""Makes directories with mode and owner. Runs on the host as root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparkwright.host.lib import trusted


@dataclass(frozen=True)
class Directory:
    """A directory as it must be, or is.

    Attributes:
        mode: permission bits, e.g. 0o755.
        uid: number of its owner and group.
    """

    path: str
    mode: int = 0o755
    uid: int = 0


def main(request: tuple[Directory, ...]) -> None:
    """Make directories or put them right, parents first. Running it twice changes nothing."""
    for one in request:
        place = Path(one.path)
        if place.is_symlink() and not place.exists():
            raise SystemExit(
                f"{one.path} is a link that leads nowhere: remove it or repair its target"
            )
        if place.exists() and not place.is_dir():
            raise SystemExit(f"{one.path} is not a directory: move it away")
        trusted.set_up(place, one.uid, one.mode)
