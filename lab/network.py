"""The bridge that connects the machines: it has no route, so traffic stays on this machine."""

import subprocess
from pathlib import Path

from lab import machines
from lab.layout import BRIDGE, CONTROLLER, PREFIX_LENGTH, Machine


def _ip(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check)


def up() -> None:
    """Make the bridge if it is missing."""
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
    """Unplug or plug in a machine's cable."""
    _ip("link", "set", interface(machine), "up" if up else "down")


def shape(machine: Machine, megabytes: float | None) -> None:
    """Limit a machine's outgoing traffic, in megabytes per second; None removes the limit.

    The limit is a queue on the machine's own end of the cable, so that packets are delayed as on a
    real connection. A limit on this side would be a bridge port's policing, which drops packets.
    """
    leader = machines.running(machine)
    if leader is None:
        raise SystemExit(f"{machine.name} is off")
    tc = ["nsenter", f"--target={leader}", "--net", "--", "tc", "qdisc"]
    subprocess.run([*tc, "del", "dev", "host0", "root"], capture_output=True, check=False)
    if megabytes is not None:
        rate = f"{round(megabytes * 8000)}kbit"
        arguments = ["add", "dev", "host0", "root", "tbf", "rate", rate, "burst", "256kb"]
        subprocess.run([*tc, *arguments, "latency", "100ms"], check=True)


def sent(machine: Machine) -> int:
    """Bytes that a machine has sent, headers included."""
    counter = Path("/sys/class/net", interface(machine), "statistics/rx_bytes")
    return int(counter.read_text())
