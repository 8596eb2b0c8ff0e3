"""A planned service in the format of another tool: what its release holds, the image by digest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from sparkwright.extras.handover.kubernetes import kubernetes
from sparkwright.extras.handover.quadlet import quadlet
from sparkwright.findings.user_error import UserError
from sparkwright.plan.container import SECRETS_MOUNT, SHM_GIB
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import rendered_from
from sparkwright.resolve.resolution import Resolution

#: The command's choices, beside ``compose``.
FORMATS = {"kubernetes": kubernetes, "quadlet": quadlet}


@dataclass(frozen=True)
class Handover:
    """A service of a host for another tool.

    Attributes:
        files: texts by their path below the host's directory.
        secret: the command that makes the key's secret of standard input.
    """

    files: dict[str, str]
    secret: str


def handover(form: str, plan: HostPlan, service: ServicePlan, resolution: Resolution) -> Handover:
    """Render a service of a host for another tool. Mirrors of registries are settings of that tool.

    Raises:
        UserError: for an image that no registry has, for a cluster's service, and for a value that
            the format can't hold.
    """
    where, image = f"services.{service.name}", service.image.name.rpartition(":")[0]
    if service.image.build:
        what = f"{image} is built on each host, and no registry has it to be pulled from"
        remedy = (
            "push the image to a registry of yours, and name it in an image and a recipe "
            "of your own catalog (docs/catalog-yaml.md)"
        )
        raise UserError.of(where, what, remedy, plan.host)
    if service.rank is not None:
        what = f"it is served by the hosts of cluster {service.rank.cluster!r} together"
        remedy = (
            "leave it out (--limit), and serve it there as that tool does over several hosts, such "
            "as Kubernetes' LeaderWorkerSet (docs/scale.md)"
        )
        raise UserError.of(where, what, remedy, plan.host)
    if form == "kubernetes":  # a network of its own: the container listens to all of it
        service = replace(service, bind="0.0.0.0")
    context = rendered_from(plan, service, resolution)
    digest = resolution.image(service.image).digest
    # Not the name of the unit that it takes over from.
    name = f"llm-{service.name}"
    context |= {
        "name": name,
        "image": f"{image}@{digest}",
        # What is compiled is the image's own.
        "caches": f"{name}-caches-{digest.rpartition(':')[2][:12]}",
        "shm_gib": math.ceil(context["shm_gib"] or SHM_GIB),
        "secrets_mount": SECRETS_MOUNT,
        "key_name": PurePosixPath(SECRETS_MOUNT).name,
    }
    return Handover(*FORMATS[form](plan.host, context))
