"""Peers: hosts take from each other what one of them has or fetches."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.operations import peers as operations
from sparkwright.run.sharing import asked_for, sources
from sparkwright.run.state import host_run, run_of


def peers() -> None:
    """Have this host serve what others will ask it for."""
    host = ctx_host.get()
    one = host_run(host)
    if one is not None:
        run = run_of(host)
        operations.serving(
            name="Peers: serve other hosts",
            contents=lambda: asked_for(run, one),
            sources=sources(run, one),
        )
