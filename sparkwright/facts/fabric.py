"""Looking at a host's part of the fabric."""

from pyinfra.api.host import Host

from sparkwright.checks.fabric.untrusted import malformed
from sparkwright.facts.answers import invalid
from sparkwright.facts.asking import Sudo, ask
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState


def state_of(host: Host, image: str | None = None) -> FabricState:
    """State of the fabric now, and the id of an image. One remote execution. Raises HostError."""
    fabric_state = ask(
        host, fabric, FabricRequest(image=image), FabricState, sudo=Sudo.IF_POSSIBLE, timeout=60,
        secrets=False,
    )  # fmt: skip
    if why := malformed(fabric_state):
        invalid("sparkwright-fabric", why)
    return fabric_state
