"""Addresses of ConnectX-7 ports, which only ``sparkwright fabric addresses`` sets."""

from pyinfra.api.host import Host

from sparkwright.checks.fabric import addresses as planned
from sparkwright.facts.asking import HostError, is_root
from sparkwright.facts.asking import addresses as connection
from sparkwright.facts.fabric import state_of
from sparkwright.operations.fabric import addresses as operations
from sparkwright.operations.lib.changing import tell
from sparkwright.run.state import HostRun, refuse, run_of


def addresses(host: Host, run: HostRun, _: dict[str, None]) -> None:
    """Set the addresses of ``fabric_addresses`` on this host's rails."""
    wanted = run.settings.fabric_addresses
    if wanted is None or host.name not in wanted.hosts:
        return
    run.connection = connection(host)
    try:
        state = state_of(host)
    except HostError as error:
        refuse(host, str(error))
        return
    came = run.connection[1] if run.connection else None
    present = frozenset(run_of(host).hosts)
    if findings := list(planned.problems(wanted, host.name, state, came, present)):
        tell(host, findings)
        refuse(host, "refused: fabric-addresses")
        return
    given = planned.addresses_of(wanted, host.name, state)
    pending = planned.pending(wanted, given, state)
    operations.configured(
        name="Fabric: addresses",
        text=planned.netplan(wanted, given),
        devices=[each.rail.name for each in given],
        pending=pending,
        before=state.netplan,
        _sudo=not is_root(host),
        # pyinfra would put a password into a command line.
        _sudo_password="",
    )
    if not pending:
        return
    pings = planned.pings(wanted, given)
    operations.proved(name="Fabric: every peer answers", pings=pings)
    operations.kept(name="Fabric: keep the addresses", pings=pings)
