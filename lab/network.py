"""The bridge that the machines hang on. No route leads off it: traffic stays on this machine."""

from __future__ import annotations

import subprocess

from lab.layout import BRIDGE, CONTROLLER, PREFIX_LENGTH, Machine


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


def up() -> None:
    """Make the bridge when it is not there."""
    if _ip("link", "show", BRIDGE, check=False).returncode != 0:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{CONTROLLER}/{PREFIX_LENGTH}", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def down() -> None:
    """Remove the bridge."""
    _ip("link", "delete", BRIDGE, check=False)


def interface(machine: Machine) -> str:
    """This side's end of the machine's cable, as systemd-nspawn names it (15 characters fit)."""
    return f"vb-{machine.machine}"


def link(machine: Machine, *, up: bool) -> None:
    """Pull or plug a machine's cable."""
    _ip("link", "set", interface(machine), "up" if up else "down")
