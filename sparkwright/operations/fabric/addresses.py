"""Static addresses of ConnectX-7 ports: write and apply them, have the peers prove them, or restore
the former addresses.

The host reverts an unproven change by itself (``host/fabric_addresses.py``), so a lost
connection is back after three minutes at most.
"""

from collections.abc import Sequence
from io import StringIO

from pyinfra.api.command import StringCommand
from pyinfra.api.host import Host
from pyinfra.context import ctx_host, ctx_state
from pyinfra.operations import files

from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.others import Ours
from sparkwright.host import fabric_addresses
from sparkwright.host.fabric import NETPLAN
from sparkwright.host.fabric_addresses import AddressesRequest
from sparkwright.host.lib.icmp import Ping
from sparkwright.operations.files import show_diff
from sparkwright.operations.lib.changing import Commands, acting, announce, operation

#: Seconds until the host reverts the change, seconds for the peers' answers before the revert, and
#: seconds for their answers when the change is kept.
_BACK, _PROVE, _KEEP = 180, 30, 5


@operation()
def configured(
    text: str,
    devices: Sequence[str],
    *,
    pending: Sequence[str],
    before: str | None = None,
) -> Commands:
    """Write and apply netplan's file, with ``_sudo=True``; ``proved`` must follow.

    Args:
        text: text of the file.
        devices: devices that the text configures.
        pending: the changes as text; empty for no change.
        before: the file's present text, for ``--diff``.

    **Example:**

    .. code:: python

        addresses.configured(
            text="network: {version: 2}\\n", devices=["enp1s0f1np1"], _sudo=True,
            pending=["192.168.177.11/24 on enp1s0f1np1"],
        )
    """
    host = ctx_host.get()
    if not pending:
        host.noop("the addresses are as desired")
        return
    announce(pending)
    if not ctx_state.get().is_executing:
        show_diff(NETPLAN, before, text)
    yield _step(AddressesRequest("arm", text, tuple(devices), seconds=_BACK))
    yield from files.put._inner(
        src=StringIO(text), dest=NETPLAN, user="root", group="root", mode="0600"
    )
    yield StringCommand("netplan", "apply")


@operation()
def proved(pings: Sequence[Ping]) -> Commands:
    """Check that every peer answers on every rail; otherwise the host restores its former
    addresses.

    Args:
        pings: addresses that must answer.

    **Example:**

    .. code:: python

        from sparkwright.operations import Ping

        addresses.proved(pings=[Ping("192.168.177.12", "enp1s0f1np1", 8972)])
    """
    peers = ", ".join(f"{ping.address} over {ping.device}" for ping in pings)
    announce([f"ping {peers}"])
    yield _step(AddressesRequest("prove", pings=tuple(pings), seconds=_PROVE))


@operation()
def kept(pings: Sequence[Ping]) -> Commands:
    """Keep the change if all peers still answer: a host whose proof failed no longer answers.

    Args:
        pings: addresses that must still answer.

    **Example:**

    .. code:: python

        from sparkwright.operations import Ping

        addresses.kept(pings=[Ping("192.168.177.12", "enp1s0f1np1", 8972)])
    """
    yield _step(AddressesRequest("keep", pings=tuple(pings), seconds=_KEEP))


def _step(request: AddressesRequest) -> Ours:
    keeps = request.step == "keep"

    def act(host: Host) -> Sequence[str]:
        faults = ask(host, fabric_addresses, request, tuple[str, ...], timeout=_BACK + _PROVE)
        if faults:
            raise HostError("\n".join(faults))
        return [f"wrote {NETPLAN}, and every peer answers"] if keeps else []

    return acting(act, forget=keeps)
