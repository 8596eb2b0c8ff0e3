"""Removal: leaving a host as it was found, for ``sparkwright remove``."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.host.lib.records import encode
from sparkwright.operations import removal
from sparkwright.run.state import host_run


def removed(
    services: str | None = None,
    weights: bool = False,
    bootstrap: bool = False,
    answers: str | None = None,
    planless: bool = False,
) -> None:
    """Take services, releases, units, images and, on request, weights off the host.

    Args:
        services: names with commas between them; everything without.
        weights: whether the models go too.
        bootstrap: whether what bootstrap did is undone.
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    one = host_run(ctx_host.get())
    if one is not None:
        removal.removed(
            name="Remove: services, units, images",
            services=services.split(",") if services else None,
            weights=weights,
            bootstrap=bootstrap,
            models_root=one.settings.models_root,
            services_root=one.settings.services_root,
            answered=lambda answer: setattr(one, "answer", encode(answer)),
            break_lock=one.settings.break_lock,
        )
