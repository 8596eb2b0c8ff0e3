"""Switches in batches: none any more after a failure, and the ranks of a cluster go together."""

import time
from collections.abc import Callable, Iterator
from functools import partial

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError
from sparkwright.host.release import SwitchJournal
from sparkwright.run.state import HostRun, Run, run_of

Switch = Callable[[Host], SwitchJournal]


def named(run: Run) -> Iterator[tuple[str, list[str]]]:
    """Name and hosts of every batch of this run."""
    every = run.rollout.batches
    for n, names in enumerate(every, 1):
        few = ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"
        yield f"Batch {n} of {len(every)} ({few})", names


def in_turn(host: Host, switch: Switch, *, left: Callable[[], None]) -> SwitchJournal:
    """Switch a host when its batch comes, if it comes at all.

    Args:
        left: called when it does not.

    Raises:
        HostError: when it does not, or the host is lost sight of.
    """
    run = run_of(host)
    rollout, settings = run.rollout, run.rollout_settings
    if not rollout.began and settings.unprepared == "stop":
        unprepared = [name for name, item in run.hosts.items() if item.memory.failure]
        if unprepared:
            rollout.stop(f"{', '.join(unprepared)} could not be prepared")
    # One in maintenance tries nothing, and is no reason to leave all others as they are.
    canaries = [name for name in rollout.batches[0] if run.hosts[name].left is None]
    if settings.canaries and canaries and host.name not in rollout.batches[0]:
        lost = [name for name in canaries if run.hosts[name].memory.failure]
        if len(lost) == len(canaries):
            rollout.stop(f"no canary could be tried ({', '.join(lost)})")
    if not rollout.stopped:
        time.sleep(rollout.wait(host.name, settings.pause_seconds, time.monotonic()))
    if rollout.stopped:
        left()
        raise HostError(f"not switched, since {rollout.stopped}")
    rollout.began = True
    try:
        ended = switch(host)
    except HostError as error:
        rollout.stop(f"{host.name} was lost sight of: {str(error).splitlines()[0]}")
        raise
    rollout.ended_at = time.monotonic()
    if ended.result != "good":
        rollout.stop(f"{host.name} did not get through: {ended.reasons[0]}")
    return ended


def with_ranks(
    host: Host, switch: Switch, *, turn: Callable[[Host, Switch], SwitchJournal] | None = None
) -> SwitchJournal:
    """Switch a host, when every other rank of its clusters is ready to follow.

    Args:
        turn: when it may happen, where hosts are switched one after the other.

    Raises:
        HostError: another rank is not ready; the host is left as it is.
    """
    checked = partial(_when_whole, switch)
    return turn(host, checked) if turn else checked(host)


def _when_whole(switch: Switch, host: Host) -> SwitchJournal:
    run = run_of(host)
    if why := apart(run, run.hosts[host.name]):
        raise HostError(f"not switched: the ranks of a cluster are switched together, and {why}")
    return switch(host)


def apart(run: Run, one: HostRun) -> str | None:
    """Why a head's followers can't go with it; None when they can."""
    ranks = [service.rank for service in one.desired.plan.services]
    heads = [rank for rank in ranks if rank is not None and rank.head]
    absent = {name for rank in heads for name in rank.hosts if name not in run.hosts}
    away = dict.fromkeys(absent, "is not part of this run")
    for name, other in run.hosts.items():
        if other.memory.failure is not None:
            away[name] = f"failed: {other.memory.failure.splitlines()[0]}"
        elif other.left is not None:
            away[name] = other.left
    lost = ((name, rank) for rank in heads for name in rank.hosts if name in away)
    return next((f"{name} of cluster {rank.cluster} {away[name]}" for name, rank in lost), None)
