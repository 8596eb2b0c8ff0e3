"""Peers: hosts fetch content from a host that has the content or is fetching it."""

from pyinfra.api.host import Host

from sparkwright.operations import peers as operations
from sparkwright.run.sharing import asked_for, sources
from sparkwright.run.state import HostRun, role, run_of


@role
def peers(host: Host, host_run: HostRun) -> None:
    """Serve this host's content to the hosts that will request it."""
    run = run_of(host)
    operations.serving(
        name="Peers: serve content to other hosts",
        contents=lambda: asked_for(run, host_run),
        sources=sources(run, host_run),
    )
