"""Serving: releases, units and the running services, host by host. Only changed services restart.

A host without a running service starts at once. A host with a running service is switched in its
batch, canaries first. If the new release fails its smoke test, the host rolls back and no further
host is switched.

A follower's release is staged before any head is switched: the follower switches with its head.
"""

from functools import partial

from pyinfra.api.host import Host

from sparkwright.operations import exclusive, services
from sparkwright.plan.changes import serves_already
from sparkwright.run import rollout
from sparkwright.run.state import HostRun, role, run_of


@role
def serving(host: Host, host_run: HostRun) -> None:
    """Install and start each service's release."""
    run = run_of(host)
    exclusive.declared(
        name="Serving: exclusive groups",
        files=host_run.exclusive_files,
    )
    own = [service for service in host_run.services if not service.follower]
    followers = [service for service in host_run.services if service.follower]
    if any(service.rank for host in run.hosts.values() for service in host.desired.plan.services):
        services.running(
            name="Serving: start follower ranks",
            services=followers,
            secrets=host_run.secrets,
            ended=partial(rollout.remember, host_run),
        )
    switched = serves_already(own, host_run.secrets, host_run.observed)
    services.running(
        name="Serving: start",
        services=() if switched else own,
        secrets=host_run.secrets,
        turn=rollout.with_ranks,
        ended=partial(rollout.remember, host_run),
    )
    for title, names in host.loop(rollout.named(run)):
        services.running(
            name=f"Serving: {title}",
            services=own if switched and host.name in names else (),
            secrets=host_run.secrets,
            proxies=partial(rollout.proxies_of, host_run),
            turn=partial(
                rollout.with_ranks,
                turn=partial(rollout.in_turn, left=partial(rollout.leave, host_run)),
            ),
            ended=partial(rollout.remember, host_run, run=run),
        )
    if run.rollout_settings.on_failure == "fleet":
        services.switched_back(
            name="Serving: roll switched services back",
            targets=partial(rollout.to_take_back, host, run, host_run),
            ended=partial(rollout.remember_taken_back, run, host_run),
        )
