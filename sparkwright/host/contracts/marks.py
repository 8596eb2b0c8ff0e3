"""What people have put on a host by hand: a service that is stopped, a host in maintenance.

stopped.json and maintenance.json are read across versions: their keys are these names.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Beside bootstrap's record: it outlives services and their root, and is root's alone.
MAINTENANCE = "/var/lib/sparkwright/maintenance.json"


@dataclass(frozen=True)
class Stopped:
    """That a service was stopped by request: stopped.json beside its releases.

    Attributes:
        at: seconds since the epoch.
        keep: whether a boot is not to start it either.
        active: since when systemd had it running then (ActiveEnterTimestamp).
    """

    by: str
    at: float
    why: str = ""
    keep: bool = False
    active: str = ""

    def holds(self, unit: Mapping[str, str]) -> bool:
        """Whether the service was not started since, by systemd's properties of its unit."""
        since = unit.get("ActiveEnterTimestamp", "")
        return unit.get("ActiveState") in ("inactive", "failed") and since in ("", self.active)


@dataclass(frozen=True)
class Maintenance:
    """Who took the host out, when (seconds since the epoch, by its clock) and why."""

    by: str
    at: float
    why: str = ""
