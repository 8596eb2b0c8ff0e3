"""Reboots this host, once its answer is on the way. Runs on the host as root."""

from __future__ import annotations

from sparkwright.host.lib.processes import run


def main(request: int) -> str:
    """Have systemd reboot so many seconds from now; the id of the boot that ends."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
        boot = file.read().strip()
    done = run(
        "systemd-run", "--quiet", f"--on-active={request}", "systemctl", "reboot", timeout=20
    )
    if not done.ok:
        raise SystemExit(f"systemd-run: {done.message}")
    return boot
