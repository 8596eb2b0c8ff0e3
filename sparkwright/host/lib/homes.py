"""The services of this host, by what lies on it, and what is kept beside their releases."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.marks import MAINTENANCE, Maintenance, Stopped
from sparkwright.host.lib import files

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Iterable, Mapping

STOPPED = "stopped.json"


def services(services_root: str | Path) -> dict[str, Path]:
    """Every service that was ever started here: its directory, by name."""
    homes = sorted(Path(services_root).glob("services/*"))
    return {home.name: home for home in homes if (home / "current").is_symlink()}


def chosen(named: Iterable[str] | None, known: Mapping[str, Path]) -> dict[str, Path]:
    """The named services that are here, every one without names: only what lies here is a name."""
    wanted = known if named is None else set(named)
    return {name: home for name, home in known.items() if name in wanted}


def unit(name: str) -> str:
    """The systemd unit of a service."""
    return f"sparkwright-{name}.service"


def stopped(home: Path) -> Stopped | None:
    """By whom a service was stopped; ``holds`` tells whether it still is."""
    return files.record(Stopped, home / STOPPED)


def maintenance() -> Maintenance | None:
    """Who has the host in maintenance. What another user than root wrote is no mark."""
    return files.record(Maintenance, Path(MAINTENANCE))
