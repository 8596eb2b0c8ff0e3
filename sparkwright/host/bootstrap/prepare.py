"""Preparation of a bootstrap step: record how to undo the step, and free apt for it.

Runs on the host as root. Recorded first, so that a step which was cut off is undone like any other.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import apt, documents, files
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass, field, replace

#: The steps that bootstrap did on a host, by name, in their order, so that they can be undone. Not
#: below services_root, which goes when services are removed.
RECORD = "/var/lib/sparkwright/bootstrap.json"


@dataclass(frozen=True)
class Undo:
    """How a step is undone.

    Attributes:
        packages: missing packages, which it installs.
        files: that it writes: path -> sha256. A file with another content by then stays.
        units: that go with its files.
        commands: what else is run, without a shell.
        apart: what is not undone, and what the user may do.
    """

    packages: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    apart: str | None = None


@dataclass(frozen=True)
class PrepareRequest:
    """A step that is about to be done.

    Attributes:
        undo: recorded before anything changes.
        apt: whether to wait for others' use of apt and dpkg, and to complete an interrupted use.
        sudoers: path and text of a file of sudo's, written when visudo accepts it.
    """

    step: str
    undo: Undo = field(default_factory=Undo)
    apt: bool = False
    sudoers: tuple[str, str] | None = None


@dataclass(frozen=True)
class Step:
    """A step that was done. ``before`` names every package that was installed then."""

    undo: Undo
    before: tuple[str, ...] = ()


_SUDOERS = Path("/etc/sudoers.d")


def record(step: str, undo: Undo) -> None:
    """Add a step to the record; a step that was begun before keeps its record."""
    earlier = documents.record(dict[str, Step], RECORD) or {}
    begun = earlier.get(step)
    if begun is not None:
        before, first = begun.before, begun.undo
        undo = replace(
            undo,
            packages=tuple(dict.fromkeys((*first.packages, *undo.packages))),
            files={**first.files, **undo.files},
            units=tuple(dict.fromkeys((*first.units, *undo.units))),
            # The first ones last: what they put back was there before everything.
            commands=tuple(dict.fromkeys((*undo.commands, *first.commands))),
        )
    else:
        before = apt.installed() if undo.packages else ()
    files.write_record(Path(RECORD), {**earlier, step: Step(undo, before)}, 0o600)


def sudoers(path: Path, text: str) -> None:
    """A file of sudo's. A mistake in one stops all of sudo: visudo reads it first."""
    if path.parent != _SUDOERS or "." in path.name:
        raise SystemExit(f"{path}: sudo reads no such file")
    handle, name = tempfile.mkstemp(prefix="sparkwright-sudoers-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        checked = run("visudo", "-cf", name, timeout=20)
    finally:
        with suppress(OSError):
            Path(name).unlink()
    if not checked.ok:
        why = (checked.err.strip() or checked.message).splitlines()
        raise SystemExit(f"visudo does not accept what would be written to {path}: {why[:1]}")
    files.write(path, text, 0o440)


def main(request: PrepareRequest) -> tuple[str, ...]:
    """Prepare the step."""
    if request.apt:
        apt.free()
    record(request.step, request.undo)
    if request.sudoers is None:
        return ()
    path, text = request.sudoers
    sudoers(Path(path), text)
    return (f"wrote {path}",)
