"""Rules once more for a host that was observed: its real GPU, memory and architecture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparkwright.checks.configuration import Hardware, check_host
from sparkwright.checks.host.facts import HostFacts
from sparkwright.checks.host.gpu import given
from sparkwright.findings.finding import Finding
from sparkwright.host.observation import Observation
from sparkwright.plan.desired import Desired
from sparkwright.text.sizes import GIB


def hardware_of(host: HostFacts) -> Hardware:
    """What the observation says of the hardware."""
    # Of several, those that its services get: others are nobody's.
    gpus = [one for service in host.plan.services for one in given(host.gpus, service)]
    vram = max((gpu.memory_mib or 0 for gpu in gpus), default=0) / 1024
    return Hardware(
        compute_cap=gpus[0].compute_cap if gpus else None,
        memory_gib=host.observed.memory.total / GIB,
        vram_gib=vram or None,
        architecture=host.architecture,
        gpus=len(host.gpus) or None,
    )


def new_violations(
    desired: Desired, observed: Observation, known: Sequence[Finding]
) -> Iterator[Finding]:
    """Violations that the plan could not know. Silenced rules stay silent."""
    host = HostFacts(desired, observed, observed.time)
    reported = {(finding.id, finding.subject.key) for finding in known}
    for finding in check_host(host.plan, host.desired.catalog, hardware_of(host)):
        if finding.silenced is None and (finding.id, finding.subject.key) not in reported:
            silence = f"silenced = {{{finding.id!r}: 'why it does not apply here'}}"
            remedy = f"{finding.remedy}; or silence it on this service: {silence}"
            yield replace(finding, remedy=remedy)
