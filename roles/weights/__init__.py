"""Weights: body and drafter at their pinned commits, fetched by jobs that run on the host."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.operations import models
from sparkwright.run.sharing import sources
from sparkwright.run.state import host_run, run_of


def weights() -> None:
    """Start fetching what is missing; ``roles.fetched`` waits for it."""
    host = ctx_host.get()
    one = host_run(host)
    if one is None:
        return
    for model in host.loop(one.desired.models):
        models.present(
            name=f"Weights: {model.resolved.repository}",
            **model.arguments,
            sources=sources(run_of(host), one, model.shared_name),
            wait=False,
        )
