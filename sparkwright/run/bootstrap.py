"""Looking at a host before it is made ready, and what is left to do there."""

from __future__ import annotations

from pyinfra.api.host import Host

from sparkwright.bootstrap.decide import Decision, decide, request_of
from sparkwright.facts.asking import HostError, Sudo, ask
from sparkwright.findings.finding import errors
from sparkwright.findings.render import text
from sparkwright.host.bootstrap import inspection
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.operations.changing import paint
from sparkwright.operations.connections import addresses
from sparkwright.run.state import HostRun, refuse


def state_of(host: Host, request: BootstrapRequest) -> BootstrapState:
    """What the host is now. One remote execution. Raises HostError."""
    return ask(
        host, inspection, request, BootstrapState, sudo=Sudo.IF_POSSIBLE, timeout=120, secrets=False
    )


def decided(host: Host, one: HostRun) -> tuple[BootstrapState, Decision] | None:
    """What is left to do; None, and the host is left as it is, where something is in the way."""
    one.connection = one.connection or addresses(host)
    try:
        state = state_of(host, request_of(one.settings))
    except HostError as error:
        refuse(host, str(error))
        return None
    found = decide(one.desired.plan, state, one.lan_addresses)
    mine = [finding.on(host.name) for finding in found.findings]
    for line in text(mine, hosts=False, paint=paint).splitlines():
        host.log(line)
    if bad := errors(mine):
        one.findings = mine
        names = ", ".join(dict.fromkeys(finding.id for finding in bad))
        refuse(host, f"refused by bootstrap: {names}")
        return None
    one.cured = found.cures
    return state, found
