"""The services of this host, by the files on it, and the files beside their releases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import documents, files
from sparkwright.host.lib.records import dataclass, encode

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
    """Maintenance of a host: author, start (seconds since the epoch, host's clock) and reason."""

    by: str
    at: float
    why: str = ""


@dataclass(frozen=True)
class Action:
    """An action on a service or its host that is no switch: a line of state/actions.jsonl.

    Attributes:
        at: seconds since the epoch.
        done: started, stopped, restarted, maintenance on or maintenance off.
        service: None for the whole host.
    """

    at: float
    by: str
    done: str
    service: str | None = None
    why: str = ""


STOPPED = "stopped.json"


def note(services_root: str | Path, actions: Iterable[Action]) -> None:
    """Add actions to the host's history; on a full disk they are done all the same."""
    lines = "".join(f"\n{json.dumps(encode(action))}\n" for action in actions)
    with suppress(OSError):
        files.append(Path(services_root, "state/actions.jsonl"), lines)


def services(services_root: str | Path) -> dict[str, Path]:
    """Every service that was ever started here: its directory, by name."""
    homes = sorted(Path(services_root).glob("services/*"))
    return {home.name: home for home in homes if (home / "current").is_symlink()}


def chosen(named: Iterable[str] | None, homes: Mapping[str, Path]) -> dict[str, Path]:
    """The named services that are here, every one without names: only what lies here is a name."""
    wanted = homes if named is None else set(named)
    return {name: home for name, home in homes.items() if name in wanted}


def unit(name: str) -> str:
    """The systemd unit of a service."""
    return f"sparkwright-{name}.service"


def stopped(home: Path) -> Stopped | None:
    """By whom a service was stopped; ``holds`` tells whether it still is."""
    return files.record(Stopped, home / STOPPED)


def maintenance() -> Maintenance | None:
    """Maintenance mark of the host; None if a user other than root wrote it."""
    return files.record(Maintenance, Path(MAINTENANCE))


def switching(state: Path) -> bool:
    """Whether a switch to other releases is under way: its journal has no end yet."""
    journal = documents.read(state / "switch/progress.json")
    return journal is not None and journal.get("step") != "ended"
