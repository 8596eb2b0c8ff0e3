"""Prepare a bootstrap step: record how to undo it, and wait until apt is free.

The program runs on the host as root. The record is written first, so that an interrupted step can
also be undone.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import apt, documents, files, records
from sparkwright.host.lib.processes import run

#: The steps that bootstrap did on a host, by name and in order, so that they can be undone. The
#: file is not below services_root, which is deleted when services are removed.
RECORD = "/var/lib/sparkwright/bootstrap.json"


@records.dataclass(frozen=True)
class Undo:
    """The way to undo a step.

    Attributes:
        packages: missing packages, which the step installs.
        files: path -> sha256 of each file that the step writes. A file that was changed after the
            step stays.
        units: systemd units that are removed with the files.
        commands: further commands to run, without a shell.
        apart: the part that is not undone, and the user's options for it.
    """

    packages: tuple[str, ...] = ()
    files: dict[str, str] = records.field(default_factory=dict)
    units: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    apart: str | None = None


@records.dataclass(frozen=True)
class PrepareRequest:
    """Request to prepare a step.

    Attributes:
        undo: the way to undo the step, recorded before the step changes the host.
        apt: whether to wait for other users of apt and dpkg, and to complete an interrupted
            installation.
        sudoers: path and text of a sudoers file, written if visudo accepts it.
    """

    step: str
    undo: Undo = records.field(default_factory=Undo)
    apt: bool = False
    sudoers: tuple[str, str] | None = None


@records.dataclass(frozen=True)
class Step:
    """A completed step. ``before`` names every package that was installed before the step."""

    undo: Undo
    before: tuple[str, ...] = ()


_SUDOERS = Path("/etc/sudoers.d")


def record(step: str, undo: Undo) -> None:
    """Add a step to the record, or extend the entry of a recorded step."""
    earlier = documents.record(dict[str, Step], RECORD) or {}
    if (begun := earlier.get(step)) is not None:
        before, first = begun.before, begun.undo
        undo = records.replace(
            undo,
            packages=tuple(dict.fromkeys((*first.packages, *undo.packages))),
            files={**first.files, **undo.files},
            units=tuple(dict.fromkeys((*first.units, *undo.units))),
            # The earliest commands run last: they restore the oldest state.
            commands=tuple(dict.fromkeys((*undo.commands, *first.commands))),
        )
    else:
        before = apt.installed() if undo.packages else ()
    files.write_record(Path(RECORD), {**earlier, step: Step(undo, before)}, 0o600)


def sudoers(path: Path, text: str) -> None:
    """Write a sudoers file once visudo accepts it: a mistake in one file disables all of sudo."""
    if path.parent != _SUDOERS or "." in path.name:
        raise SystemExit(f"{path}: sudo does not read files with this path")
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
        raise SystemExit(f"visudo refuses the text for {path}: {why[:1]}")
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
