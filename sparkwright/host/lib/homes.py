"""The services of this host, found by their files, and the files beside their releases."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import documents, files, records

#: File of a host's maintenance, beside bootstrap's record: removing services does not remove it,
#: and only root can change it.
MAINTENANCE = "/var/lib/sparkwright/maintenance.json"


@records.dataclass(frozen=True)
class Stopped:
    """Record of a stop by request: stopped.json beside the service's releases.

    Attributes:
        at: seconds since the epoch.
        keep: whether a boot must not start the service.
        active: the unit's start time before the stop, as systemd reports it (ActiveEnterTimestamp).
    """

    by: str
    at: float
    why: str = ""
    keep: bool = False
    active: str = ""

    def holds(self, unit: Mapping[str, str]) -> bool:
        """Return whether the service is still stopped, according to systemd's properties of its
        unit.
        """
        since = unit.get("ActiveEnterTimestamp", "")
        return unit.get("ActiveState") in ("inactive", "failed") and since in ("", self.active)


@records.dataclass(frozen=True)
class Maintenance:
    """Maintenance of a host: the user who began it, its start (seconds since the epoch, by the
    host's clock) and its reason.
    """

    by: str
    at: float
    why: str = ""


@records.dataclass(frozen=True)
class Action:
    """An action on a service or its host other than a switch: a line of state/actions.jsonl.

    Attributes:
        at: seconds since the epoch.
        done: started, stopped, restarted, maintenance on or maintenance off.
        service: name of the service; None for the whole host.
    """

    at: float
    by: str
    done: str
    service: str | None = None
    why: str = ""


STOPPED, ACTIONS = "stopped.json", "state/actions.jsonl"


def note(history: Path, entries: Iterable[object]) -> None:
    """Add entries to a history, each as a line of JSON. A full disk is ignored, since the actions
    are already done.
    """
    # A line torn by a power cut must not spoil the next line.
    lines = "".join(f"\n{json.dumps(records.encode(entry))}\n" for entry in entries)
    with suppress(OSError):
        files.append(history, lines)


def services(services_root: str | Path) -> dict[str, Path]:
    """Return every service that was ever started here: directory by name."""
    homes = sorted(Path(services_root).glob("services/*"))
    return {home.name: home for home in homes if (home / "current").is_symlink()}


def chosen(named: Iterable[str] | None, homes: Mapping[str, Path]) -> dict[str, Path]:
    """Return the named services that exist here; all services if no names are given."""
    wanted = homes if named is None else set(named)
    return {name: home for name, home in homes.items() if name in wanted}


def unit(name: str) -> str:
    """Return the systemd unit of a service."""
    return f"sparkwright-{name}.service"


def stopped(home: Path) -> Stopped | None:
    """Return the last recorded stop of a service; ``holds`` returns whether the service is still
    stopped.
    """
    return files.record(Stopped, home / STOPPED)


def maintenance() -> Maintenance | None:
    """Return the host's maintenance mark; None if it is missing or not written by root."""
    return files.record(Maintenance, Path(MAINTENANCE))


def switching(state: Path) -> bool:
    """Return whether a switch to other releases is under way: its journal has no result yet."""
    journal = documents.read(state / "switch/progress.json")
    return journal is not None and journal.get("step") != "ended"
