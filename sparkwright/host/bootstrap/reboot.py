"""Reboot this host after the answer has been sent. Runs on the host as root."""

from __future__ import annotations

from sparkwright.host.lib.processes import run


def main(request: int) -> str:
    """Have systemd reboot after ``request`` seconds, and return the id of the current boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
        boot = file.read().strip()
    done = run(
        "systemd-run", "--quiet", f"--on-active={request}", "systemctl", "reboot", timeout=20
    )
    if not done.ok:
        raise SystemExit(f"systemd-run: {done.message}")
    return boot
