"""Preflight: observe each host once and report all findings; an error keeps the host unchanged."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.host.judge import judge, new_violations
from sparkwright.facts.asking import HostError, addresses
from sparkwright.findings.finding import Finding, errors
from sparkwright.operations import services
from sparkwright.operations.lib import locks, switching
from sparkwright.operations.lib.changing import Commands, look, operation, tell
from sparkwright.proxy import reachable
from sparkwright.run import observation, state

_NOT_CALLED = (
    "the settings name steps of bootstrap, but this run does not include them: let deploy.py call "
    "bootstrap() before preflight() (docs/rollouts.md)"
)


@operation()
def passed(warnings: int, again: Callable[[Host], Sequence[str]] | None = None) -> Commands:
    """Operation with the result of preflight, so that pyinfra's results show the result.

    Args:
        again: function that checks the host after bootstrap and returns its faults.
    """
    problems = list(look(again)) if again else []
    yield from problems
    if not problems:
        ctx_host.get().noop(f"preflight passed, {warnings} warnings")


def judged(host: Host, host_run: state.HostRun, *, dry: bool) -> bool:
    """Observe and check a host; refuse it if any finding is an error.

    Args:
        dry: whether to ignore a running switch instead of waiting for its end.

    Returns:
        Whether the run continues on the host.
    """
    host_run.connection = addresses(host)
    try:
        asked = _observe(host, host_run)
        if state.set_aside(host, host_run.observed.maintenance, host_run.observed.time):
            return False
        if other := services.other_format(host_run.observed):
            raise HostError(other)
        if host_run.observed.switching and not dry:
            if busy := locks.in_the_way(host):
                raise HostError(busy)
            host.log("an earlier switch is still under way: waiting for its end")
            with suppress(switching.Interrupted):  # this run repairs the host
                switching.follow(host)
            asked = _observe(host, host_run)
    except HostError as error:
        state.refuse(host, str(error))
        return False
    if host_run.settings.bootstrap and host_run.cured is None:
        host.log(_NOT_CALLED)
    bad = _judge(host, host_run, asked, host_run.cured or frozenset())
    if bad:
        state.refuse(host, bad)
    return not bad


def judged_again(host: Host, host_run: state.HostRun) -> Sequence[str]:
    """Check a host after bootstrap; return the reasons why the host can't continue.

    Raises:
        HostError: the host does not answer.
    """
    bad = _judge(host, host_run, _observe(host, host_run), frozenset())
    return [bad] if bad else []


def _judge(host: Host, host_run: state.HostRun, asked: float, cured: frozenset[str]) -> str | None:
    """Print the host's findings, except findings that bootstrap will fix.

    Returns the reason to refuse the host; None without an error.
    """
    result = every_finding(host_run, asked)
    later = dict.fromkeys(finding.id for finding in result if finding.id in cured)
    host_run.findings = [finding for finding in result if finding.id not in cured]
    tell(host, host_run.findings)
    if later:
        host.log(f"{', '.join(later)}: checked again after bootstrap")
    names = ", ".join(dict.fromkeys(finding.id for finding in errors(host_run.findings)))
    return f"refused by preflight: {names}" if names else None


def every_finding(host_run: state.HostRun, asked: float) -> list[Finding]:
    """Return all findings of an observed host.

    Args:
        asked: time of the request, in seconds since the epoch by this machine's clock.
    """
    # The host read its clock at about half of the round trip.
    result = judge(host_run.desired, host_run.observed, now=(asked + time.time()) / 2)
    result += new_violations(host_run.desired, host_run.observed, host_run.violations)
    return [*result, *reachable.unreached(host_run.proxies, host_run.observed.reached)]


def _observe(host: Host, host_run: state.HostRun) -> float:
    """Observe the host, and return the time of the request, in seconds since the epoch."""
    asked = time.time()
    observation.look(host, host_run)
    return asked
