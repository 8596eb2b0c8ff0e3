"""The system itself: sudo, systemd, Python, kernel, clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.host.facts import HOSTS, HostCheck, error, warning
from sparkwright.findings.finding import Finding

#: Seconds that a host's clock may differ from the controller's before TLS and logs go wrong.
CLOCK_TOLERANCE = 30


def check_sudo(host: HostCheck) -> Iterator[Finding]:
    """Whether sudo works without a question."""
    user = host.observed.user
    if host.observed.sudo is not None:
        yield error(
            "sudo", f"user {user}: {host.observed.sudo}",
            "sudo without a password, or with the one that pyinfra is given",
            "units, Docker and /opt belong to root",
            f"on the host: echo '{user} ALL=(ALL) NOPASSWD: ALL' > ~/sudoers && "
            "sudo visudo -cf ~/sudoers && sudo install -m 0440 -o root -g root ~/sudoers "
            "/etc/sudoers.d/sparkwright; or run pyinfra with --same-sudo-password "
            "(docs/install.md, sudo)",
        )  # fmt: skip


def check(host: HostCheck) -> Iterator[Finding]:
    """systemd, Python, kernel and clock."""
    observed = host.observed
    if observed.systemd_version is None:
        yield error(
            "systemd", "systemctl does not answer", "systemd as the init system",
            "units start the services at boot and after a crash",
            "use a host that was booted with systemd",
        )  # fmt: skip
    elif observed.system_state == "degraded":
        yield warning(
            "systemd", "some units of the host have failed", "no failed unit",
            "a failed unit may be one that the service needs", "systemctl --failed",
        )  # fmt: skip
    if "microsoft" in observed.kernel.lower():
        yield error(
            "wsl", f"Linux {observed.kernel}: WSL2 on Windows", "Linux on the machine itself",
            "its GPU is Windows' own, its memory and network belong to a virtual machine that "
            "Windows stops when it likes",
            "boot Ubuntu on this box, or serve from another one", HOSTS,
        )  # fmt: skip
    if observed.python < (3, 10):
        yield error(
            "python", f"Python {observed.python[0]}.{observed.python[1]}", "Python >= 3.10",
            "the programs that run on the host are written for it",
            "use Ubuntu 22.04, Debian 12 or newer",
        )  # fmt: skip
    version = re.match(r"(\d{1,9})\.(\d{1,9})", observed.kernel)
    if version and (int(version[1]), int(version[2])) < (5, 15):
        yield warning(
            "kernel", f"Linux {observed.kernel}", "Linux >= 5.15",
            "driver 580 is not tried on older kernels", "upgrade the distribution",
        )  # fmt: skip
    yield from _clock(host)


def _clock(host: HostCheck) -> Iterator[Finding]:
    skew = host.observed.time - host.now
    ntp = "sudo timedatectl set-ntp true"
    if abs(skew) > CLOCK_TOLERANCE:
        yield error(
            "clock", f"the host's clock is {skew:+.0f} s off this machine's",
            f"within {CLOCK_TOLERANCE} s", "certificates and tokens are refused with a wrong clock",
            ntp,
        )  # fmt: skip
    elif not host.observed.clock_synchronised:
        yield warning(
            "clock", "the clock is not synchronised", "a synchronised clock",
            "it is right now, but will drift", ntp,
        )  # fmt: skip
