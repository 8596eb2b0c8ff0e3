"""The ranks of a cluster's service: laid ready on every host, and switched by the head's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError
from sparkwright.operations.switching import SwitchResult
from sparkwright.plan.ranks import lost
from sparkwright.run.state import HostRun, Run, run_of

#: Switches a host.
_Switch = Callable[[Host], SwitchResult]


def together(
    host: Host, switch: _Switch, *, turn: Callable[[Host, _Switch], SwitchResult] | None = None
) -> SwitchResult:
    """Switch a host, when every other rank of its clusters is ready to follow.

    Args:
        turn: when it may happen, where hosts are switched one after the other.

    Raises:
        HostError: one is not; the host is left as it is.
    """
    checked = partial(_when_whole, switch)
    return turn(host, checked) if turn else checked(host)


def _when_whole(switch: _Switch, host: Host) -> SwitchResult:
    run = run_of(host)
    if why := apart(run, run.hosts[host.name]):
        raise HostError(f"not switched: the ranks of a cluster are switched together, and {why}")
    return switch(host)


def apart(run: Run, one: HostRun) -> str | None:
    """Why a head's followers can't go with it; None when they can."""
    heads = [
        service.rank
        for service in one.desired.plan.services
        if service.rank is not None and service.rank.head
    ]
    absent = {name for rank in heads for name in rank.hosts if name not in run.hosts}
    away = dict.fromkeys(absent, "is not part of this run")
    for name, other in run.hosts.items():
        if other.memory.failure is not None:
            away[name] = f"failed: {other.memory.failure.splitlines()[0]}"
        elif other.left is not None:
            away[name] = other.left
    return lost(heads, away)
