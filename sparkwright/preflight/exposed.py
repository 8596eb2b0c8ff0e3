"""Directories that root writes to: nobody else may put something in their place."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Finding
from sparkwright.preflight.checks import HostCheck, error


def check(host: HostCheck) -> Iterator[Finding]:
    """The roots of models and services, and every directory above them."""
    settings = host.plan.settings
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
