"""Rules once more, when a host was looked at: its real GPU, memory and architecture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpu import parse_query
from sparkwright.findings.finding import Finding
from sparkwright.plan.plan import GIB, HostPlan
from sparkwright.preflight.observation import Probe
from sparkwright.resolve.registry import ARCHITECTURES
from sparkwright.rules import Broken, check_host
from sparkwright.rules.rule import Hardware


def hardware_of(probe: Probe) -> Hardware:
    """What a probe says of the hardware."""
    gpus = parse_query(probe.gpu.out) if probe.gpu.code == 0 else []
    vram = max((gpu.memory_mib or 0 for gpu in gpus), default=0) / 1024
    return Hardware(
        compute_cap=gpus[0].compute_cap if gpus else None,
        memory_gib=probe.memory.total / GIB,
        vram_gib=vram or None,
        architecture=ARCHITECTURES.get(probe.architecture, probe.architecture),
        assumed=False,
    )


def new_findings(
    plan: HostPlan, catalog: Catalog, probe: Probe, known: Sequence[Broken]
) -> Iterator[Finding]:
    """What the real hardware breaks and the plan could not know. Silenced rules stay silent."""
    said = {(broken.rule, broken.key) for broken in known}
    for broken in check_host(plan, catalog, hardware_of(probe)):
        if broken.silenced is None and (broken.rule, broken.key) not in said:
            yield Finding(
                check=broken.rule,
                severity=broken.severity,
                found=f"{broken.key} ({broken.origin}): {broken.what}",
                needed=broken.instead,
                why=f"{broken.why} ({broken.source})",
                remedy=f"{broken.instead}; or silence it on this service: "
                f"silenced = {{{broken.rule!r}: 'why it holds here'}}",
            )
