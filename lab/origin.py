"""Origin of a fleet: its checkout, and the files that its machines were made from.

Another checkout may use a fleet that was left up. Then the hub, its repositories and the images in
the registry are renewed; the contents of the machines' disks stay, and a warning is printed.
"""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.holding import PROJECT, when
from lab.layout import STATE

FILE = STATE / "origin.json"
_LAB = Path(__file__).resolve().parent
#: Files that determine the contents of machines, which are made once, before their first boot.
_MACHINES = (_LAB / "machines.py", _LAB / "layout.py", _LAB / "fakes")


@dataclass(frozen=True)
class Origin:
    """Origin of a fleet's machines: checkout, time, and digest of the files they were made with."""

    checkout: str
    since: float
    machines: str


def here() -> Origin:
    """This checkout, now."""
    return Origin(str(PROJECT), time.time(), digest(_MACHINES))


def read(file: Path = FILE) -> Origin | None:
    """Origin recorded when the fleet was made; None without a readable record."""
    try:
        return Origin(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write(origin: Origin, file: Path = FILE) -> None:
    """Write the origin beside the machines."""
    file.write_text(json.dumps(asdict(origin)) + "\n", encoding="utf-8")


def differences(made: Origin | None, mine: Origin) -> list[str]:
    """Warnings for a checkout that continues with an existing fleet."""
    if made is None:
        return ["this fleet has no record of its checkout: to start a new fleet, run"
                " `python -m lab down` first"]  # fmt: skip
    lines = []
    if made.checkout != mine.checkout:
        lines.append(
            f"this fleet was started from another checkout, {made.checkout}, {when(made.since)}; "
            "deployed files and services stay on the hosts until a run changes them"
        )
    if made.machines != mine.machines:
        lines.append(
            "the fleet's machines were made with other files than this checkout's lab/: "
            "to start new machines, run `python -m lab down` first"
        )
    return lines


def digest(places: Iterable[Path]) -> str:
    """Digest of files, and of all files in folders, by name and content; without files that
    Python compiled.
    """
    result = hashlib.sha256()
    for position in places:
        files = sorted(position.rglob("*")) if position.is_dir() else [position]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                name = file.relative_to(position.parent).as_posix()
                result.update(f"{name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return result.hexdigest()
