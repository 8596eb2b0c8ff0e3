"""Directories that root writes to: they can be made, and are root's alone."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from sparkwright.checks.host.facts import HostCheck, error
from sparkwright.findings.finding import Finding


def check(host: HostCheck) -> Iterator[Finding]:
    """The roots of models and services, and every directory above them."""
    settings = host.plan.settings
    roots = {"models_root": settings.models_root, "services_root": settings.services_root}
    for name, root in roots.items():
        disk = host.observed.disks.get(root)
        if disk and disk.obstacle:
            yield error(
                "not-a-directory", f"{disk.obstacle} is not a directory",
                f"a directory {root}, or nothing yet, for {name}",
                "files can only be written below directories",
                f"set {name} to another directory, or move it away: "
                f"sudo mv {quote(disk.obstacle)} {quote(disk.obstacle + '.old')}",
            )  # fmt: skip
    for one in host.observed.exposed:
        yield error(
            "exposed-directory", f"{one.path} {one.why}",
            f"directories that root alone can write to, above {settings.models_root}, "
            f"{settings.services_root} and their contents",
            "who may change a directory decides what root reads and writes there: verified "
            "weights, programs, keys",
            f"sudo chown root:root {one.path} && sudo chmod go-w {one.path}, or set models_root "
            "or services_root to a directory of root's",
        )  # fmt: skip
