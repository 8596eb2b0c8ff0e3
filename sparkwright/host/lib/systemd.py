"""systemd: the state of units, and commands on them.

A reload (``daemon-reload``, or ``enable``, which also reloads) can take the GPU away from running
containers. A reload is only needed if systemd has loaded an older text of a unit, and never for a
new unit.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from sparkwright.host.lib import documents, files
from sparkwright.host.lib.processes import Outcome, Running, run

UNITS = Path("/etc/systemd/system")
#: Directory of units that exist until the next boot.
TRANSIENT = Path("/run/systemd/system")
#: Properties to read of a unit.
FIELDS = (
    "Id,LoadState,ActiveState,SubState,Result,UnitFileState,NRestarts,NeedDaemonReload,"
    "ExecMainStatus,ExecMainStartTimestamp,ActiveEnterTimestamp"
)
#: States of a unit whose program runs, starts or stops.
RUNNING = ("active", "activating", "deactivating")


def showing(*units: str, fields: str = FIELDS, timeout: float | None = 10) -> Running:
    """Start ``systemctl show`` for units; without units, for systemd itself."""
    return Running("systemctl", "show", "-p", fields, *units, timeout=timeout)


def shown(text: str) -> dict[str, dict[str, str]]:
    """Parse the output of ``systemctl show`` for several units, by their names."""
    blocks = map(documents.pairs, text.strip().split("\n\n"))
    return {properties["Id"]: properties for properties in blocks if "Id" in properties}


def unit(name: str, timeout: float | None = None) -> dict[str, str]:
    """Return systemd's properties of a unit; empty if systemd does not answer."""
    return documents.pairs(showing(name, timeout=timeout).outcome().out)


def systemctl(*arguments: str) -> Outcome:
    """Run a systemctl command without a time limit."""
    return run("systemctl", *arguments)


def reload() -> None:
    """Reload systemd's units."""
    systemctl("daemon-reload")


def is_enabled(name: str) -> bool:
    """Return whether all links of a unit's [Install] section exist: ``enable``, which reloads, is
    then not needed.
    """
    links = _links(name)
    return links is not None and all(link.is_symlink() for link in links)


def _links(name: str) -> list[Path] | None:
    """Return the links that ``enable`` makes for a unit; None if the unit is missing."""
    try:
        lines = (UNITS / name).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    targets = [names for line in lines if (names := line.partition("WantedBy=")[2].split())]
    return [UNITS / f"{target}.wants" / name for names in targets for target in names]


def want_at_boot(name: str, *, wanted: bool) -> None:
    """Enable or disable a unit at boot, without a reload.

    ``enable`` reloads, and with --no-reload it marks every unit as changed. This function therefore
    makes the links itself.
    """
    for link in _links(name) or ():
        if not wanted:
            link.unlink(missing_ok=True)
        elif not link.is_symlink():
            link.parent.mkdir(mode=0o755, exist_ok=True)
            link.symlink_to(UNITS / name)


def enable(*units: str) -> None:
    """Enable units at boot, with a reload if any unit is not enabled yet."""
    for name in units:
        if not is_enabled(name):
            systemctl("enable", "--quiet", name)


def disable(*units: str) -> None:
    """Stop units, and disable them at boot."""
    systemctl("disable", "--quiet", "--now", *units)


def is_active(name: str) -> bool:
    """Return whether a unit runs."""
    return systemctl("is-active", name).out.strip() == "active"


def start(*units: str) -> None:
    """Start units; a failure raises SystemExit."""
    done = systemctl("start", *units)
    if not done.ok and any(map(_triggers_unloaded, units)):
        reload()
        done = systemctl("start", *units)
    if not done.ok:
        raise SystemExit(f"systemctl start {' '.join(units)}: {done.err.strip()}")


def _triggers_unloaded(name: str) -> bool:
    """Return whether systemd has not loaded the service of a timer or socket, since the service's
    file was missing at the last reload: the files were deleted, and then written again.
    """
    service = f"{name.rpartition('.')[0]}.service"
    return (UNITS / service).exists() and unit(service).get("LoadState") == "not-found"


def remove(units: Iterable[str]) -> None:
    """Stop units and remove their files."""
    if names := list(units):
        disable(*names)
        for name in names:
            (UNITS / name).unlink(missing_ok=True)
        reload()
        systemctl("reset-failed", *names)


def write_files(texts: Mapping[str, tuple[str, int]], *, parents: int = 0o755) -> set[str]:
    """Write files, given by path with text and mode. Returns the changed paths.

    systemd reloads only if it has loaded one of the units with another text.
    """
    paths = {path for path in texts if Path(path).parent == UNITS and Path(path).exists()}
    changed = {
        path
        for path, (text, mode) in texts.items()
        if files.write(Path(path), text, mode, parents=parents)
    }
    if changed & paths:
        reload()
    return changed
