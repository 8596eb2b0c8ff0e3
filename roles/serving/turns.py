"""One host, or one batch of hosts, after the other; and none any more after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from pyinfra.api.host import Host

from roles import remote, site
from roles.serving.switch import Ended


def each() -> Iterator[tuple[str, list[str]]]:
    """Name and hosts of every turn of this run."""
    turns = site.rollout().turns
    for n, names in enumerate(turns, 1):
        few = ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"
        yield f"Serving: turn {n} of {len(turns)} ({few})", names


def take(
    host: Host, run: site.HostRun, switch: Callable[[], Ended], *, left: Callable[[], None]
) -> Ended:
    """Switch a host, if its turn comes at all.

    Args:
        left: called when it does not.

    Raises:
        HostError: when it does not, or the host is lost sight of.
    """
    rollout, settings = site.rollout(), site.rollout_settings()
    if not rollout.began and settings.unprepared == "stop":
        unprepared = [name for name, one in site.runs().items() if one.refused]
        if unprepared:
            rollout.stop(f"{', '.join(unprepared)} could not be prepared")
    canaries = rollout.turns[0]
    if settings.canaries and host.name not in canaries:
        lost = [name for name in canaries if site.runs()[name].refused]
        if len(lost) == len(canaries):
            rollout.stop(f"no canary could be tried ({', '.join(lost)})")
    if not rollout.stopped:
        time.sleep(rollout.wait(host.name, settings.pause_seconds, time.monotonic()))
    if rollout.stopped:
        left()
        raise remote.HostError(f"not switched, since {rollout.stopped}")
    rollout.began = True
    try:
        ended = switch()
    except remote.HostError as error:
        rollout.stop(f"{host.name} was lost sight of: {str(error).splitlines()[0]}")
        raise
    rollout.ended_at = time.monotonic()
    if ended.result != "good":
        rollout.stop(f"{host.name} did not get through: {ended.reasons[0]}")
    return ended
