"""The system itself: sudo, systemd, Python, kernel, clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: Seconds that a host's clock may differ from the controller's before TLS and logs go wrong.
CLOCK_TOLERANCE = 30


@check("sudo")
def _sudo(host: HostFacts) -> Iterator[Symptom]:
    user = host.observed.user
    if host.observed.sudo is not None:
        yield Symptom(
            f"user {user}: {host.observed.sudo}",
            "sudo without a password, or with the one that pyinfra is given",
            remedy=f"on the host: echo '{user} ALL=(ALL) NOPASSWD: ALL' > ~/sudoers && "
            "sudo visudo -cf ~/sudoers && sudo install -m 0440 -o root -g root ~/sudoers "
            "/etc/sudoers.d/sparkwright; or run pyinfra with --same-sudo-password "
            "(docs/install.md, sudo)",
        )


@check("systemd")
def _systemd(host: HostFacts) -> Iterator[Symptom]:
    if host.observed.systemd_version is None:
        yield Symptom("systemctl does not answer", "systemd as the init system")
    elif host.observed.system_state == "degraded":
        yield Symptom(
            "some units of the host have failed",
            "no failed unit",
            reason="a failed unit may be one that the service needs",
            remedy="systemctl --failed",
            severity=Severity.WARNING,
        )


@check("wsl")
def _wsl(host: HostFacts) -> Iterator[Symptom]:
    kernel = host.observed.kernel
    if "microsoft" in kernel.lower():
        yield Symptom(f"Linux {kernel}: WSL2 on Windows", "Linux on the machine itself")


@check("python")
def _python(host: HostFacts) -> Iterator[Symptom]:
    major, minor, *_ = host.observed.python
    if (major, minor) < (3, 10):
        yield Symptom(f"Python {major}.{minor}", "Python >= 3.10")


@check("kernel")
def _kernel(host: HostFacts) -> Iterator[Symptom]:
    version = re.match(r"(\d{1,9})\.(\d{1,9})", host.observed.kernel)
    if version and (int(version[1]), int(version[2])) < (5, 15):
        yield Symptom(f"Linux {host.observed.kernel}", "Linux >= 5.15")


@check("clock")
def _clock(host: HostFacts) -> Iterator[Symptom]:
    skew = host.observed.time - host.now
    if abs(skew) > CLOCK_TOLERANCE:
        yield Symptom(
            f"the host's clock is {skew:+.0f} s off this machine's", f"within {CLOCK_TOLERANCE} s"
        )
    elif not host.observed.clock_synchronised:
        yield Symptom(
            "the clock is not synchronised",
            "a synchronised clock",
            reason="it is right now, but will drift",
            severity=Severity.WARNING,
        )
