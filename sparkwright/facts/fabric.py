"""A host's part of the fabric, as a fact: ``pyinfra HOST fact sparkwright.facts.fabric.Fabric``."""

from __future__ import annotations

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase

from sparkwright.facts import hooks, programs
from sparkwright.facts.answers import HostError, parse
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState
from sparkwright.host.lib.records import encode

hooks.printable(FabricState)
_LABEL = "sparkwright-fabric"


class Fabric(FactBase[FabricState]):
    """Ports of the ConnectX-7, their twins, addresses, RDMA devices, and who is at the other end.

    One remote execution, which changes nothing. As root it asks each port's neighbours, too;
    without sudo it tells those that the kernel knows already.

    **Example:**

    .. code:: python

        state = host.get_fact(Fabric)
        [rail.speed for rail in state.rails]
    """

    def command(self, ask: bool = True) -> StringCommand:
        """``ask``: whether neighbours are asked for."""
        text = QuoteString(programs.argument(fabric, encode(FabricRequest(ask=ask))))
        run = StringCommand("python3", "-IS", "-c", text, _LABEL)
        return StringCommand("sudo -n", run, "||", run)

    def process(self, output: list[str]) -> FabricState:
        """The program's answer, checked against its type."""
        try:
            return parse(_LABEL, output, FabricState)
        except HostError as error:
            raise FactProcessError(str(error)) from None
