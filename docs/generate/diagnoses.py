"""docs/diagnoses.md: what doctor, watch and alert rules find, and why a service is slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.checks.fabric import judge as fabric
from sparkwright.checks.service.diagnose import CHECKS

_INTRODUCTION = """\
What `sparkwright doctor` finds, with the likely cause and the remedy. The watch on the hosts and
the alert rules for Prometheus use the same names and the same thresholds; see
[Troubleshooting](troubleshooting.md) and [Monitoring](monitoring.md)."""

_FABRIC = """\
What `sparkwright fabric test` finds on hosts that are joined by ConnectX-7, and between them;
see [The fabric](fabric.md)."""

_SLOW = """\
What `sparkwright bench` and `sparkwright report` name when a service is slower than its card."""


def page(catalog: Catalog) -> str:
    """The whole page."""
    parts = [
        "# Diagnoses",
        GENERATED.format(
            what="sparkwright/checks/service, sparkwright/checks/fabric or catalog/causes"
        ),
        _INTRODUCTION,
        table(
            ("diagnosis", "severity", "likely cause", "remedy", "source"),
            (
                (
                    f"`{check.id}`",
                    str(check.severity),
                    check.reason,
                    check.remedy,
                    check.source,
                )
                for check in CHECKS
            ),
        ),
        "## The fabric",
        _FABRIC,
        table(
            ("diagnosis", "severity", "likely cause", "remedy", "source"),
            (
                (f"`{one.id}`", str(one.severity), one.reason, one.remedy, one.source)
                for one in fabric.CHECKS
            ),
        ),
        "## Slow services",
        _SLOW,
        table(("cause", "symptoms", "what", "how to find out", "source"), _causes(catalog)),
    ]
    return "\n\n".join(parts) + "\n"


def _causes(catalog: Catalog) -> Iterable[Sequence[str]]:
    for group in catalog.causes.values():
        for cause in group.causes:
            scope = [", ".join(cause.when)]
            scope += [f"{cause.concurrency} requests and more"] if cause.concurrency > 1 else []
            scope += [f"{cause.prompt_tokens} tokens and more"] if cause.prompt_tokens else []
            scope += [f"tag {' or '.join(cause.tags)}"] if cause.tags else []
            scope += [f"not with {key} {value}" for key, value in cause.ruled_out_by.items()]
            yield f"`{cause.id}`", "; ".join(scope), cause.what, cause.look, cause.source
