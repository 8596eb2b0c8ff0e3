"""Image: pulled by digest, so that all hosts run the same bytes, by jobs that run on the host."""

from pyinfra.api.host import Host

from sparkwright.operations import images
from sparkwright.resolve.credentials import account
from sparkwright.run.sharing import build_of, sources
from sparkwright.run.state import HostRun, role, run_of


@role
def image(host: Host, one: HostRun) -> None:
    """Start pulling what is missing; ``roles.fetched`` waits for it."""
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
