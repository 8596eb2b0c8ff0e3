"""Rollback: going back on request, for ``sparkwright rollback``, in the batches of a deploy."""

from __future__ import annotations

from functools import partial

from pyinfra.context import ctx_host

from sparkwright.operations import services
from sparkwright.run import batches, rollout
from sparkwright.run.rollback import targets_of
from sparkwright.run.state import host_run, run_of


def rollback(to: str | None = None, service: str | None = None, planless: bool = False) -> None:
    """Switch each service to the release before, or to a given one.

    Args:
        to: a release that the host still has.
        service: only this one.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    host = ctx_host.get()
    one = host_run(host)
    targets = targets_of(host, one, to=to, service=service) if one else None
    if one is None or targets is None:
        return
    for title, names in host.loop(batches.named(run_of(host))):
        mine = targets if host.name in names else []
        services.switched_back(
            name=f"Rollback: {title}",
            targets=partial(list, mine),
            services_root=one.settings.services_root,
            turn=partial(batches.in_turn, left=lambda: None),
            ended=partial(rollout.remember_rolled_back, one),
            break_lock=one.settings.break_lock,
        )
