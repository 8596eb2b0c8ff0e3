"""Peers: hosts take from each other what one of them has or fetches."""

from pyinfra.api.host import Host

from sparkwright.operations import peers as operations
from sparkwright.run.sharing import asked_for, sources
from sparkwright.run.state import HostRun, role, run_of


@role
def peers(host: Host, host_run: HostRun) -> None:
    """Have this host serve what others will ask it for."""
    run = run_of(host)
    operations.serving(
        name="Peers: serve other hosts",
        contents=lambda: asked_for(run, host_run),
        sources=sources(run, host_run),
    )
