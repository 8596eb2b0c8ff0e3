"""Directories that root writes to: they can be made, and are root's alone."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check


@check("not-a-directory")
def _obstacles(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    roots = {"models_root": settings.models_root, "services_root": settings.services_root}
    for name, root in roots.items():
        disk = host.observed.disks.get(root)
        if disk and disk.obstacle:
            yield Symptom(
                f"{disk.obstacle} is not a directory",
                f"a directory {root}, or nothing yet, for {name}",
                remedy=f"set {name} to another directory, or move it away: "
                f"sudo mv {quote(disk.obstacle)} {quote(disk.obstacle + '.old')}",
            )


@check("exposed-directory")
def _exposed(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    for directory in host.observed.exposed:
        yield Symptom(
            f"{directory.path} {directory.why}",
            f"directories that root alone can write to, above {settings.models_root}, "
            f"{settings.services_root} and their contents",
            remedy=f"sudo chown root:root {directory.path} && sudo chmod go-w {directory.path}, or "
            "set models_root or services_root to a directory of root's",
        )
