"""One service as another tool is given it: what a release holds, and the image by its digest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sparkwright.config.settings import EVERY_ADDRESS
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.plan.container import SHM_GIB
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import Contents, contents, service_home
from sparkwright.resolve.resolution import Resolution


@dataclass(frozen=True)
class Handover:
    """A service of a host.

    Attributes:
        image: ``host/path@sha256:...``, in the registry that it comes from: mirrors are settings
            of the other tool.
        inside: what its container is started with, in a network of its own or its host's.
        home: the service's directory on the host.
        shm_gib: size of its own /dev/shm, whole.
    """

    host: str
    service: ServicePlan
    image: str
    inside: Contents
    home: str
    shm_gib: int

    @property
    def name(self) -> str:
        """Its name on its host; not that of the unit which it takes over from."""
        return f"llm-{self.service.name}"

    @property
    def caches(self) -> str:
        """A name for what is compiled: another image's is another one."""
        return f"{self.name}-caches-{self.image.rpartition(':')[2][:12]}"

    @property
    def local_address(self) -> str:
        """Where the container reaches its own server."""
        bind = "" if self.service.container.strict else self.service.bind
        if not bind or bind in EVERY_ADDRESS:
            return "127.0.0.1"
        return f"[{bind}]" if ":" in bind else bind


def handover(
    plan: HostPlan, service: ServicePlan, resolution: Resolution, *, own_network: bool
) -> Handover:
    """A service of a host, to be rendered for another tool.

    Args:
        own_network: whether its container has a network of its own, and listens to all of it.

    Raises:
        UserError: for an image that no registry has.
    """
    resolved = resolution.image(service.image)
    name = service.image.name.rpartition(":")[0]
    if service.image.build:
        raise UserError(
            [
                mistake(
                    f"services.{service.name}",
                    f"{name} is built on each host, and no registry has it to be pulled from",
                    "push the image to a registry of yours, and name it in an image and a recipe "
                    "of your own catalog (docs/catalog-yaml.md)",
                    plan.host,
                )
            ]
        )
    if service.rank is not None:
        what = f"it is served by the hosts of cluster {service.rank.cluster!r} together"
        remedy = (
            "leave it out (--limit), and serve it there as that tool does over several hosts, such "
            "as Kubernetes' LeaderWorkerSet (docs/scale.md)"
        )
        raise UserError([mistake(f"services.{service.name}", what, remedy, plan.host)])
    if own_network:
        service = replace(service, bind="0.0.0.0")
    inside = contents(plan, service, resolution)
    return Handover(
        host=plan.host,
        service=service,
        image=f"{name}@{resolved.digest}",
        inside=inside,
        home=service_home(plan, service),
        shm_gib=math.ceil(inside.shm_gib or SHM_GIB),
    )
