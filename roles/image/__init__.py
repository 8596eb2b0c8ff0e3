"""Image: pulled by digest, so that all hosts run the same bytes, by jobs that run on the host."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.operations import images
from sparkwright.resolve.credentials import account
from sparkwright.run.sharing import build_of, sources
from sparkwright.run.state import host_run, run_of


def image() -> None:
    """Start pulling what is missing; ``roles.fetched`` waits for it."""
    host = ctx_host.get()
    one = host_run(host)
    if one is None:
        return
    settings = one.settings
    for wanted in host.loop(one.desired.images):
        shared = wanted.shared_name(one.observed.architecture)
        images.present(
            name=f"Image: {wanted.planned.name}",
            **wanted.arguments,
            build=build_of(one, wanted),
            account=account(settings.registry_auth_source, wanted.planned.pulled.registry),
            sources=sources(run_of(host), one, shared),
            wait=False,
        )
