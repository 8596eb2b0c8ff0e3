"""Contents of each bootstrap step: packages, files, units, commands, and how to undo them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from sparkwright.bootstrap.package_sources import Repository
from sparkwright.engines import ENGINES, engine
from sparkwright.host.bootstrap.prepare import Undo
from sparkwright.text.shipped_yaml import beside

UNITS = "/etc/systemd/system"


@cache
def files() -> dict[str, dict[str, str]]:
    """Texts of the files that a step writes, by step and path."""
    processes = "|".join(process for name in ENGINES for process in engine(name).processes)
    return {
        step: {path: text.replace("ENGINES", processes) for path, text in texts.items()}
        for step, texts in beside(__file__, "files.yaml").items()
    }


@dataclass(frozen=True)
class StepPlan:
    """A step to be done on a host.

    Attributes:
        would: the step's planned work, as text, line by line.
        packages: packages to install.
        repository: source of the packages; None for the host's own sources.
        files: text by path; root owns them, and all users may read them.
        group: group that the login user joins.
        sudoers: path and text of a sudoers file.
        commands: commands to run after the files are written, without a shell.
        restarts: units that read the changed files only at their start.
        enables: units that run from now on, and at boot.
        undo: commands and files that undo the step.
    """

    name: str
    would: tuple[str, ...]
    packages: tuple[str, ...] = ()
    repository: Repository | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    sudoers: tuple[str, str] | None = None
    commands: tuple[tuple[str, ...], ...] = ()
    restarts: tuple[str, ...] = ()
    enables: tuple[str, ...] = ()
    undo: Undo = field(default_factory=Undo)


def sudoers_file(user: str) -> tuple[str, str]:
    """Path and text of the file that lets a user become root without a password.

    sudo ignores a file with a dot in its name. docs/install.md shows how to write the rule by hand.
    """
    name = "".join(item if item.isalnum() or item in "-_" else "_" for item in user)
    return f"/etc/sudoers.d/sparkwright-{name}", f"{escaped(user)} ALL=(ALL) NOPASSWD: ALL\n"


def escaped(user: str) -> str:
    """Return a user's name for sudoers, with a backslash before each special character."""
    return "".join(item if item.isalnum() or item in "-_." else f"\\{item}" for item in user)


def sums(files: Mapping[str, str]) -> dict[str, str]:
    """Return the sha256 of each text, by path."""
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
