"""Formats of other tools that a planned service is written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkwright.extras.handover import kubernetes, quadlet
from sparkwright.extras.handover.service import Handover, handover
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve.resolution import Resolution


@dataclass(frozen=True)
class Format:
    """What another tool is given.

    Attributes:
        render: a service -> its files by their path below the host's directory.
        secret: a service -> what its secret is called, and the command that makes it from standard
            input.
        own_network: whether every container has a network of its own.
    """

    render: Callable[[Handover], dict[str, str]]
    secret: Callable[[Handover], str]
    own_network: bool

    def services(self, plan: HostPlan, resolution: Resolution) -> list[Handover]:
        """The services of a host.

        Raises:
            UserError: for an image that no registry has.
        """
        return [
            handover(plan, service, resolution, own_network=self.own_network)
            for service in plan.services
        ]


#: The command's choices, beside ``compose``.
FORMATS: Mapping[str, Format] = {
    "kubernetes": Format(kubernetes.files, kubernetes.secret, own_network=True),
    "quadlet": Format(quadlet.files, quadlet.secret, own_network=False),
}
