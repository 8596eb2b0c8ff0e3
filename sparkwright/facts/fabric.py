"""A host's part of the fabric, as a fact: ``pyinfra HOST fact sparkwright.facts.fabric.Fabric``."""

from pyinfra.api.command import StringCommand

from sparkwright.facts import hooks
from sparkwright.facts.observation import ProgramFact
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState

hooks.printable(FabricState)


class Fabric(ProgramFact[FabricState]):
    """Ports of the ConnectX-7, their twins, addresses, RDMA devices, and who is at the other end.

    One remote execution, which changes nothing. As root it asks each port's neighbours, too;
    without sudo it tells those that the kernel knows already.

    **Example:**

    .. code:: python

        state = host.get_fact(Fabric)
        [rail.speed for rail in state.rails]
    """

    program, answer = fabric, FabricState

    def command(self, ask: bool = True) -> StringCommand:
        """``ask``: whether neighbours are asked for."""
        return self.asking(FabricRequest(ask=ask))
