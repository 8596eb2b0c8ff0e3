"""Reboots this host, once its answer is on the way. Runs on the host as root."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwright.host.lib.processes import run


@dataclass(frozen=True)
class RebootRequest:
    """A reboot, seconds from now."""

    after: int = 2


def main(request: RebootRequest) -> str:
    """Have systemd reboot in a moment; the id of the boot that ends."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
        boot = file.read().strip()
    words = ("systemd-run", "--quiet", f"--on-active={request.after}", "systemctl", "reboot")
    done = run(*words, timeout=20)
    if not done.ok:
        raise SystemExit(f"systemd-run: {done.said}")
    return boot
