"""Preflight: one observation per host, every finding at once; a host that fails is not touched."""

from __future__ import annotations

import time
from contextlib import suppress

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import HostError
from sparkwright.findings.finding import errors
from sparkwright.findings.render import text
from sparkwright.operations import locks, reaching
from sparkwright.operations.changing import Commands, operation, paint
from sparkwright.operations.connections import addresses
from sparkwright.operations.run import HostRun, refuse
from sparkwright.operations.switching import Interrupted, follow
from sparkwright.preflight.hardware import new_violations
from sparkwright.preflight.judge import judge
from sparkwright.proxy import reachable


@operation()
def passed(warnings: int) -> Commands:
    """The result of preflight as an operation, so that pyinfra's results show it."""
    ctx_host.get().noop(f"preflight passed, {warnings} warnings")
    yield from ()


def judged(host: Host, one: HostRun, *, dry: bool) -> bool:
    """Observe and judge a host; refuse it when any finding is an error.

    Args:
        dry: whether a switch that is under way is left alone instead of waited for.

    Returns:
        Whether the host goes on.
    """
    one.connection = addresses(host)
    try:
        asked = _observe(host, one)
        if one.observed.switching and not dry:
            breaking = one.settings.break_lock
            if busy := locks.in_the_way(host, break_lock=breaking):
                raise HostError(busy)
            host.log("a switch that was begun before is still under way: waiting for its end")
            with suppress(Interrupted):  # what it left is put in order by this run
                follow(host, one.settings.services_root)
            asked = _observe(host, one)
    except HostError as error:
        refuse(host, str(error))
        return False
    # Half of the round trip: about when the host read its clock.
    one.findings = judge(one.desired, one.observed, now=(asked + time.time()) / 2)
    one.findings += new_violations(one.desired, one.observed, one.violations)
    one.findings += reachable.unreached(one.proxies, one.observed.reached)
    for line in text(one.findings, hosts=False, paint=paint).splitlines():
        host.log(line)
    bad = errors(one.findings)
    if bad:
        names = ", ".join(dict.fromkeys(finding.id for finding in bad))
        refuse(host, f"refused by preflight: {names}")
    return not bad


def _observe(host: Host, one: HostRun) -> float:
    """Observe the host; when it was asked, seconds since the epoch by this machine's clock."""
    asked = time.time()
    reaching.look(host, one)
    return asked
