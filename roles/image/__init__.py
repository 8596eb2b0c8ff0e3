"""Image: jobs on the host pull the image by digest, so all hosts run the same bytes."""

from pyinfra.api.host import Host

from sparkwright.operations import images
from sparkwright.run.sharing import build_of, sources
from sparkwright.run.state import HostRun, role, run_of


@role
def image(host: Host, host_run: HostRun) -> None:
    """Start pulling missing images; ``roles.fetched`` waits for them."""
    stores = [wanted.store for wanted in host_run.desired.images]
    for wanted in host.loop(host_run.desired.images):
        shared = wanted.shared_name(host_run.observed.architecture)
        images.present(
            name=f"Image: {wanted.planned.name}",
            **wanted.arguments,
            build=build_of(host_run, wanted),
            account=host_run.accounts.get(wanted.planned.pulled.registry),
            sources=sources(run_of(host), host_run, shared),
            # Two images with the same base need the same parts: only one job at a time fetches
            # them.
            wait=stores.count(wanted.store) > 1,
        )
