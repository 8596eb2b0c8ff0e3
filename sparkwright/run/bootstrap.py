"""Inspection of a host before bootstrap, the remaining steps, and the reboot for a new driver."""

import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import gevent
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from sparkwright.bootstrap import box
from sparkwright.bootstrap.decide import CURES, Decision, decide, request_of
from sparkwright.checks.host import capacity, facts
from sparkwright.facts import observation, others
from sparkwright.facts.asking import HostError, Sudo, addresses, ask
from sparkwright.facts.memory import memory
from sparkwright.findings.finding import Finding, errors
from sparkwright.host import line_speed, observe
from sparkwright.host.bootstrap import inspection, reboot
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.operations.lib import changing, locks
from sparkwright.plan.desired import Desired
from sparkwright.plan.missing import missing_models
from sparkwright.plan.uplink import environment
from sparkwright.run.observation import look
from sparkwright.run.preflight import every_finding
from sparkwright.run.state import HostRun, refuse

#: Deadline for a reboot and pause between two attempts to connect, in seconds: a Spark takes about
#: two minutes, and a server that checks much memory takes longer.
_SECONDS, _PAUSE = 900.0, 5.0


def state_of(host: Host, request: BootstrapRequest) -> BootstrapState:
    """Inspect the host and return its current state. One remote execution. Raises HostError."""
    return ask(
        host, inspection, request, BootstrapState, sudo=Sudo.IF_POSSIBLE, timeout=120, secrets=False
    )


def decided(host: Host, host_run: HostRun) -> tuple[BootstrapState, Decision] | None:
    """Decide on the remaining bootstrap work.

    If an obstacle blocks the work, the host stays unchanged, and the function returns None.
    """
    host_run.connection = host_run.connection or addresses(host)
    try:
        state = state_of(host, request_of(host_run.settings))
    except HostError as error:
        refuse(host, str(error))
        return None
    result = decide(host_run.desired.plan, state, host_run.lan_addresses)
    mine = [finding.on(host.name) for finding in result.findings]
    changing.tell(host, mine)
    if bad := errors(mine):
        host_run.findings = mine
        names = ", ".join(dict.fromkeys(finding.id for finding in bad))
        refuse(host, f"refused by bootstrap: {names}")
        return None
    host_run.cured = result.cures
    return state, result


@dataclass(frozen=True)
class Readiness:
    """State of a host before its first deploy.

    Attributes:
        findings: all findings that bootstrap's steps do not fix.
        weights, image: bytes of the weights and of the image to download.
        free: free bytes of the file system for the weights.
        speed: bytes per second that the host receives from the hub; 0 without a measurement.
        hub: server of the measurement.
    """

    desired: Desired
    observed: observe.Observation
    decision: Decision
    findings: tuple[Finding, ...]
    weights: int
    image: int
    free: int
    speed: int = 0
    hub: str = ""


def readiness(host: Host, host_run: HostRun) -> Readiness:
    """Observe a host, and check it like bootstrap and preflight. Raises HostError."""
    asked = time.time()
    host_run.connection = host_run.connection or addresses(host)
    state = state_of(host, request_of(host_run.settings))
    decision = decide(host_run.desired.plan, state, host_run.lan_addresses)
    observed = look(host, host_run)
    cured = decision.cures
    # If bootstrap is blocked, leave out the findings that the requested steps would fix.
    if errors(decision.findings):
        cured = cured.union(*(CURES.get(step, ()) for step in host_run.settings.bootstrap))
    judged = [finding for finding in every_finding(host_run, asked) if finding.id not in cured]
    findings = (*(finding.on(host.name) for finding in decision.findings), *judged)
    weights, image, _ = capacity.fetches(facts.HostFacts(host_run.desired, observed, asked))
    free = weights[1].free if weights[1] else 0
    measured = (0, "") if errors(findings) else speed(host, host_run, observed)
    return Readiness(
        host_run.desired, observed, decision, findings, weights[2], image[2], free, *measured
    )  # fmt: skip


def speed(host: Host, host_run: HostRun, observed: observe.Observation) -> tuple[int, str]:
    """Measure the download speed of the largest missing file; return the bytes per second and the
    server.

    The speed is 0, without a measurement, if no file is missing or the hub does not answer.
    """
    settings, token = host_run.settings, host_run.token
    files = [(file.size, f"{model.endpoint}/{model.resolved.repository}/resolve/"
              f"{model.resolved.commit}/{quote(file.path)}")
             for model in missing_models(host_run.desired, observed)
             for file in model.resolved.to_fetch]  # fmt: skip
    if not files or settings.bundle:
        return 0, ""
    url = max(files)[1]
    config = [f'url = "{url}"', 'output = "/dev/null"'] * settings.download_connections
    if token and url.startswith("https:"):
        config.append(f'oauth2-bearer = "{token.value}"')
    if settings.http_proxy:
        config.append(f'proxy = "{settings.http_proxy}"')
        config.append(f'noproxy = "{environment(settings)["NO_PROXY"]}"')
    try:
        rate = ask(host, line_speed, "\n".join(config), int, timeout=10)
    except HostError:
        return 0, ""
    limit = settings.download_limit_mb
    return min(rate, round(limit * 1e6)) if limit else rate, urlsplit(url).hostname or ""


@changing.operation()
def rebooted(state: BootstrapState, *, asked: bool = False) -> changing.Commands:
    """Reboot the host for its new driver, and continue once the host is back.

    Fail the host if no reboot was requested.

    pyinfra's own ``server.reboot`` is not used: it detects a reboot by the uptime, which a
    container shares with its machine, and holds the host's lock during the wait.

    Args:
        state: the host's state before the reboot.
        asked: whether the user requested the reboot.
    """
    host = ctx_host.get()
    if asked:
        if not ctx_state.get().is_executing:
            host.log("would reboot, and wait until the host is back")
        yield others.Ours(_reboot, (), {})
        return
    finding = box.finding("driver-before-reboot", driver=state.driver or "none")
    if not ctx_state.get().is_executing:
        changing.tell(host, [finding])
    yield others.failing([f"{finding.observed}: {finding.remedy}"])


def _reboot(state: State, host: Host) -> bool:
    host_memory = memory(host)
    try:
        locks.take(host)
        before = ask(host, reboot, 2, str, timeout=60)
        # Release the lock before the reboot: other runs could not distinguish the lock from a dead
        # run's lock.
        locks.release(host)
        host.log("rebooting")
        _wait(host, before)
    except HostError as error:
        return others.fail(state, host, str(error).splitlines())
    host_memory.changes.append("rebooted")
    host_memory.failure = None
    asked, host_memory.observation = host_memory.asked, None
    if asked:
        observation.observe_anew(host, asked)
    return True


def _wait(host: Host, before: str) -> None:
    """Wait until the host answers after another boot. Raises HostError."""
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
        f"the host is not back {_SECONDS / 60:.0f} minutes after its reboot: check its console"
    )
