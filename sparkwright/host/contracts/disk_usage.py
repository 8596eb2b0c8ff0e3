"""What of ours lies on a host's disks, who needs it, and pruning the rest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DiskUsageRequest:
    """What is listed, and whether it is pruned.

    Attributes:
        planned: directories and images that the plan needs.
        keep_releases: releases that are kept of each service.
        plan_known: False where the plan is broken: models and images may be its, all of them.
    """

    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    planned: tuple[str, ...] = ()
    keep_releases: int = 3
    plan_known: bool = True
    prune: bool = False


@dataclass(frozen=True)
class Item:
    """Something on a host's disk.

    Attributes:
        kind: model, image, image parts, unfinished, runtime or release.
        size: bytes on the disk.
        frees: those of them that nothing else shares.
        used_by: releases that need it, and ``the plan``, or ``perhaps the plan``.
        fault: what is wrong with it, or prevents its removal.
    """

    kind: str
    name: str
    path: str
    size: int
    frees: int
    used_by: tuple[str, ...] = ()
    fault: str | None = None
    removed: bool = False


@dataclass(frozen=True)
class DiskUsage:
    """Everything of ours, and paths among the models that are not."""

    things: tuple[Item, ...]
    foreign: tuple[str, ...]
