"""Facts that checks of the fabric judge: hosts that serve one model together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sparkwright.checks.fabric.cabling import Cable, cables
from sparkwright.host.fabric import FabricState, Rail
from sparkwright.host.ranks.collective import used_rails

#: Source of most checks.
NVIDIA = "NVIDIA/dgx-spark-playbooks, connect-two-sparks and multi-sparks-through-switch"
#: What a port of a Spark reaches, in Mb/s, and the MTU that all of them use.
SPEED, MTU = 200_000, 9000


@dataclass(frozen=True)
class Fabric:
    """Hosts that serve together, as they were observed.

    Attributes:
        states: by host, in the cluster's order.
        shape: pair, ring or switch.
        images: by host, the id of the image that it serves with, where that is known.
    """

    states: Mapping[str, FabricState]
    shape: str
    images: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def cables(self) -> tuple[Cable, ...]:
        """Ports that see each other."""
        return cables(self.states)

    @cached_property
    def used(self) -> dict[str, tuple[Rail, ...]]:
        """By host, the rails that carry traffic."""
        return {host: used_rails(state, self.shape) for host, state in self.states.items()}
