"""What each step of bootstrap is: packages, files, units, commands, and how it is undone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkwright.bootstrap.sources import Repository
from sparkwright.host.bootstrap.prepare import Undo

UNITS = "/etc/systemd/system"
#: Not sparkwright-*: those are services of the plan.
CLOCKS_UNIT = "gpu-clocks.service"
CLOCKS = "200,2150"
_WRITTEN = "# Written by sparkwright's bootstrap.\n"

EARLYOOM = {
    # The package's unit reads its own file last: what it starts is replaced instead.
    f"{UNITS}/earlyoom.service.d/sparkwright.conf": (
        f"{_WRITTEN}# The engine goes before what a person needs to get in (sparkrun's values).\n"
        "[Service]\nExecStart=\nExecStart=/usr/bin/earlyoom -m 2 -s 80 --prefer (vllm|VLLM) "
        "--avoid (systemd|sshd|dockerd|containerd)\n"
    )
}
UPDATES = {
    "/etc/apt/apt.conf.d/52sparkwright-nvidia": (
        "// Written by sparkwright's bootstrap: a driver that changes under a running engine ends\n"
        "// it (pando85/homelab#4110). Update it by hand, then reboot.\n"
        'Unattended-Upgrade::Package-Blacklist { "nvidia-"; "libnvidia-"; "cuda-"; };\n'
    )
}
SWAP = {
    "/etc/sysctl.d/90-sparkwright-swap.conf": (
        f"{_WRITTEN}# Memory of a GB10 is the GPU's, too: swap is a last resort.\n"
        "vm.swappiness = 10\n"
    )
}
CLOCK_CAP = {
    f"{UNITS}/{CLOCKS_UNIT}": (
        f"{_WRITTEN}[Unit]\n"
        f"Description=GPU clocks within {CLOCKS} MHz, against power-offs under load\n"
        "After=nvidia-persistenced.service\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        f"ExecStart=/usr/bin/nvidia-smi -lgc {CLOCKS}\nExecStop=/usr/bin/nvidia-smi -rgc\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
}


@dataclass(frozen=True)
class StepPlan:
    """A step that is to be done on a host.

    Attributes:
        would: what it will do, in words, line by line.
        packages: to install.
        repository: that they come from; None for the host's own sources.
        files: text by path; root's, for all to read.
        group: that the user who logs in becomes a member of.
        sudoers: path and text of a file of sudo's.
        commands: run after the files are there, without a shell.
        restarts: units that read what changed only at their start.
        enables: units that run from now on, and at boot.
        undo: how it is undone.
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

    sudo passes over names with a dot. The name is the one of docs/install.md for one user's hosts.
    """
    name = "".join(one if one.isalnum() or one in "-_" else "_" for one in user)
    return f"/etc/sudoers.d/sparkwright-{name}", f"{escaped(user)} ALL=(ALL) NOPASSWD: ALL\n"


def escaped(user: str) -> str:
    """A user's name as sudoers reads it: of everything else than these, a backslash before it."""
    return "".join(one if one.isalnum() or one in "-_." else f"\\{one}" for one in user)


def sums(files: Mapping[str, str]) -> dict[str, str]:
    """sha256 by path."""
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
