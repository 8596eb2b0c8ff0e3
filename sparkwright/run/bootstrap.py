"""A host before it is made ready, the steps that are left, and the reboot that a new driver
needs."""

import time
from dataclasses import dataclass

import gevent
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from sparkwright.bootstrap import findings
from sparkwright.bootstrap.decide import CURES, Decision, decide, request_of
from sparkwright.checks.host.capacity import fetches
from sparkwright.checks.host.facts import HostFacts
from sparkwright.facts.asking import HostError, Sudo, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observe_anew
from sparkwright.facts.others import Ours, fail, failing
from sparkwright.findings.finding import Finding, errors
from sparkwright.host.bootstrap import inspection, reboot
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.host.observe import Observation
from sparkwright.operations import locks
from sparkwright.operations.changing import Commands, operation, tell
from sparkwright.operations.connections import addresses
from sparkwright.plan.desired import Desired
from sparkwright.run.observation import look
from sparkwright.run.preflight import every_finding
from sparkwright.run.state import HostRun, refuse

#: Seconds: a Spark takes about two minutes, a server with much memory to check takes longer.
_SECONDS, _PAUSE = 900.0, 5.0


def state_of(host: Host, request: BootstrapRequest) -> BootstrapState:
    """Inspect the host and return its present state. One remote execution. Raises HostError."""
    return ask(
        host, inspection, request, BootstrapState, sudo=Sudo.IF_POSSIBLE, timeout=120, secrets=False
    )


def decided(host: Host, host_run: HostRun) -> tuple[BootstrapState, Decision] | None:
    """Remaining bootstrap work; None, and the host is left as it is, if something blocks it."""
    host_run.connection = host_run.connection or addresses(host)
    try:
        state = state_of(host, request_of(host_run.settings))
    except HostError as error:
        refuse(host, str(error))
        return None
    result = decide(host_run.desired.plan, state, host_run.lan_addresses)
    mine = [finding.on(host.name) for finding in result.findings]
    tell(host, mine)
    if bad := errors(mine):
        host_run.findings = mine
        names = ", ".join(dict.fromkeys(finding.id for finding in bad))
        refuse(host, f"refused by bootstrap: {names}")
        return None
    host_run.cured = result.cures
    return state, result


@dataclass(frozen=True)
class Readiness:
    """A host before its first deploy.

    Attributes:
        findings: all that is wrong with it, without what bootstrap's steps answer.
        weights, image: bytes to download.
        free: bytes of the file system for the weights.
    """

    desired: Desired
    observed: Observation
    decision: Decision
    findings: tuple[Finding, ...]
    weights: int
    image: int
    free: int


def readiness(host: Host, host_run: HostRun) -> Readiness:
    """Look at a host, and judge it as bootstrap and preflight will. Raises HostError."""
    asked = time.time()
    host_run.connection = host_run.connection or addresses(host)
    state = state_of(host, request_of(host_run.settings))
    decision = decide(host_run.desired.plan, state, host_run.lan_addresses)
    observed = look(host, host_run)
    cured = decision.cures
    if errors(decision.findings):  # no step is planned: what those that are asked for would answer
        cured = cured.union(*(CURES.get(step, ()) for step in host_run.settings.bootstrap))
    judged = [finding for finding in every_finding(host_run, asked) if finding.id not in cured]
    findings = (*(finding.on(host.name) for finding in decision.findings), *judged)
    weights, image, _ = fetches(HostFacts(host_run.desired, observed, asked))
    free = weights[1].free if weights[1] else 0
    return Readiness(
        host_run.desired, observed, decision, findings, weights[2], image[2], free
    )  # fmt: skip


@operation()
def rebooted(state: BootstrapState, *, asked: bool = False) -> Commands:
    """Reboot the host for its new driver, and go on once it is back; unasked, fail it.

    Not pyinfra's own ``server.reboot``: it tells a reboot by the uptime, which a container shares
    with its machine, and waits under the host's lock.

    Args:
        state: the host before.
        asked: whether it may be rebooted.
    """
    host = ctx_host.get()
    if asked:
        if not ctx_state.get().is_executing:
            host.log("would reboot, and wait until the host is back")
        yield Ours(_reboot, (), {})
        return
    finding = findings.finding("driver-before-reboot", driver=state.driver or "none")
    if not ctx_state.get().is_executing:
        tell(host, [finding])
    yield failing([f"{finding.observed}: {finding.remedy}"])


def _reboot(state: State, host: Host) -> bool:
    host_memory = memory(host)
    try:
        locks.take(host)
        before = ask(host, reboot, 2, str, timeout=60)
        # Not held over the reboot: nobody else could tell it from a run that died.
        locks.release(host)
        host.log("rebooting")
        _wait(host, before)
    except HostError as error:
        return fail(state, host, str(error).splitlines())
    host_memory.changes.append("rebooted")
    host_memory.failure = None
    asked, host_memory.observation = host_memory.asked, None
    if asked:
        observe_anew(host, asked)
    return True


def _wait(host: Host, before: str) -> None:
    """Until the host answers from another boot. Raises HostError."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        gevent.sleep(_PAUSE)
        try:
            if host.connected:
                host.disconnect()
            host.connect(show_errors=False)
            if host.connected and state_of(host, BootstrapRequest()).boot != before:
                return
        except (HostError, OSError, EOFError):
            continue
    raise HostError(
        f"the host is not back {_SECONDS / 60:.0f} minutes after its reboot: look at its console"
    )
