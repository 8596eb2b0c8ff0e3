"""Reboot this host after the answer has been sent. The program runs on the host as root."""

from pathlib import Path

from sparkwright.host.lib.processes import run


def main(request: int) -> str:
    """Have systemd reboot after ``request`` seconds, and return the id of the current boot."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    done = run(
        "systemd-run", "--quiet", f"--on-active={request}", "systemctl", "reboot", timeout=20
    )
    if not done.ok:
        raise SystemExit(f"systemd-run: {done.message}")
    return boot
