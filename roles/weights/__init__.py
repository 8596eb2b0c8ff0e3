"""Weights: body and drafter at their pinned commits, fetched by jobs that run on the host."""

from pyinfra.api.host import Host

from sparkwright.operations import models
from sparkwright.run.sharing import sources
from sparkwright.run.state import HostRun, role, run_of


@role
def weights(host: Host, host_run: HostRun) -> None:
    """Start fetching missing weights; ``roles.fetched`` waits for them."""
    for model in host.loop(host_run.desired.models):
        models.present(
            name=f"Weights: {model.resolved.repository}",
            **model.arguments,
            sources=sources(run_of(host), host_run, model.shared_name),
            wait=False,
        )
