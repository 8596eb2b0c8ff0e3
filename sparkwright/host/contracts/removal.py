"""Taking services, or everything, off a host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemovalRequest:
    """What goes.

    Attributes:
        services: names; None for everything that is sparkwright's.
        weights: whether the models go too.
    """

    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    services: tuple[str, ...] | None = None
    weights: bool = False


@dataclass(frozen=True)
class RemovalAnswer:
    """What was done, and what was left, as words."""

    done: tuple[str, ...]
    left: tuple[str, ...]
