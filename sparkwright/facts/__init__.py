"""pyinfra facts: what a host is. One batched question, and typed views of its answer.

``pyinfra HOST fact sparkwright.facts.HostObservation`` prints everything as JSON,
``pyinfra HOST fact sparkwright.facts.NvidiaDriver`` a part.
"""

from sparkwright.facts.observation import HostObservation, observed
from sparkwright.facts.views import (
    ContainerToolkit,
    Disks,
    Docker,
    Fabric,
    Gpus,
    HostMemorySize,
    LockHolder,
    NvidiaDriver,
)

__all__ = [
    "ContainerToolkit",
    "Disks",
    "Docker",
    "Fabric",
    "Gpus",
    "HostMemorySize",
    "HostObservation",
    "LockHolder",
    "NvidiaDriver",
    "observed",
]
