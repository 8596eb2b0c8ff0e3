"""systemd: what it says of units, and having it run them.

A reload (``daemon-reload``, and ``enable``, which does one) can take the GPU from running
containers: it is only worth it when systemd knows an older text of a unit. A new unit needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sparkwright.host.lib import files
from sparkwright.host.lib.documents import pairs
from sparkwright.host.lib.processes import Outcome, Running, run

UNITS = Path("/etc/systemd/system")
#: For units until the next boot.
TRANSIENT = Path("/run/systemd/system")
#: Properties that are read of a unit.
FIELDS = (
    "Id,LoadState,ActiveState,SubState,Result,UnitFileState,NRestarts,NeedDaemonReload,"
    "ExecMainStatus,ExecMainStartTimestamp,ActiveEnterTimestamp"
)
#: States of a unit whose program runs, comes or goes.
RUNNING = ("active", "activating", "deactivating")


def showing(*units: str, fields: str = FIELDS, timeout: float | None = 10) -> Running:
    """The question to systemd, running; without units, of systemd itself."""
    return Running("systemctl", "show", "-p", fields, *units, timeout=timeout)


def shown(text: str) -> dict[str, dict[str, str]]:
    """Parse the output of ``systemctl show`` for several units, by their names."""
    blocks = map(pairs, text.strip().split("\n\n"))
    return {properties["Id"]: properties for properties in blocks if "Id" in properties}


def unit(name: str, timeout: float | None = None) -> dict[str, str]:
    """systemd's properties of a unit; empty when systemd does not answer."""
    return pairs(showing(name, timeout=timeout).outcome().out)


def systemctl(*arguments: str) -> Outcome:
    """Have systemd do something, as long as it takes."""
    return run("systemctl", *arguments)


def reload() -> None:
    """Have systemd read changed units."""
    systemctl("daemon-reload")


def is_enabled(name: str) -> bool:
    """Whether all that a unit's [Install] wants it by want it; from files: ``enable`` reloads."""
    links = _links(name)
    return links is not None and all(link.is_symlink() for link in links)


def _links(name: str) -> list[Path] | None:
    """The links that ``enable`` makes for a unit; None if the unit is not there."""
    try:
        lines = (UNITS / name).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    targets = [names for line in lines if (names := line.partition("WantedBy=")[2].split())]
    return [UNITS / f"{target}.wants" / name for names in targets for target in names]


def want_at_boot(name: str, *, wanted: bool) -> None:
    """Have a unit started at boot, or not, from the next boot on and without a reload.

    ``enable`` reloads; with --no-reload it marks every unit as changed. So the links are made here.
    """
    for link in _links(name) or ():
        if not wanted:
            link.unlink(missing_ok=True)
        elif not link.is_symlink():
            link.parent.mkdir(mode=0o755, exist_ok=True)
            link.symlink_to(UNITS / name)


def enable(*units: str) -> None:
    """Have units started at boot, with a reload if any of them is not yet."""
    for name in units:
        if not is_enabled(name):
            systemctl("enable", "--quiet", name)


def disable(*units: str) -> None:
    """Stop units, and have them started no more."""
    systemctl("disable", "--quiet", "--now", *units)


def is_active(name: str) -> bool:
    """Whether a unit runs."""
    return systemctl("is-active", name).out.strip() == "active"


def start(*units: str) -> None:
    """Start units; a failure is this program's."""
    done = systemctl("start", *units)
    if not done.ok:
        raise SystemExit(f"systemctl start {' '.join(units)}: {done.err.strip()}")


def remove(units: Iterable[str]) -> None:
    """Stop units and take their files away."""
    names = list(units)
    if names:
        disable(*names)
        for name in names:
            (UNITS / name).unlink(missing_ok=True)
        reload()
        systemctl("reset-failed", *names)


def write_files(texts: Mapping[str, tuple[str, int]], *, parents: int = 0o755) -> set[str]:
    """Write files, by path with text and mode. Returns the paths that changed.

    systemd reads its units anew only where it knew one of them with another text.
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
