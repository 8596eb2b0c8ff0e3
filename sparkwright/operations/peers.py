"""Peer sharing: a host lets others take what it has or is fetching, so that each byte comes from
outside once.

The server is a job that ends by itself when nobody asks any more. A host's own Docker takes images
from it too, while their parts arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_state

from sparkwright.host.fetch.request import PeerRoots, PeerServerRequest, document
from sparkwright.host.jobs import MODEST, Job
from sparkwright.operations import jobs, peer_keys, peer_unit, runtime
from sparkwright.operations.changing import Commands, change, operation
from sparkwright.operations.fetching import Sources

#: Seconds without a request after which the server ends.
_IDLE = 900


@operation()
def serving(
    contents: Callable[[], Sequence[str]],
    *,
    sources: Sources | None = None,
    break_lock: bool = False,
) -> Commands:
    """Have the host serve models and images to other hosts, as long as somebody asks.

    Args:
        contents: what others will ask for, in words; nothing starts no server. Called when the
            operation runs: it depends on what all hosts were observed to have.
        sources: port, addresses and keys of the server.
        break_lock: whether to take the lock from another run.
    """
    how = sources or Sources()

    def act(host: Host) -> Sequence[str]:
        home = runtime.ensure(host, how.services_root, how.bundle)
        jobs.start(host, [server_job(home, how)], how.server_secrets(host.name))
        return [f"serves {one} to other hosts" for one in contents()]

    asked = contents() if ctx_state.get().is_executing else ()
    yield from change(
        [f"serve {one} to other hosts" for one in asked], act,
        services_root=how.services_root, break_lock=break_lock,
        otherwise="no other host asks this one",
    )  # fmt: skip


def server_job(home: str, how: Sources) -> Job:
    """The job of a host's peer server. A changed program or setting makes another job of it, and
    the old one makes room."""
    roots = PeerRoots(models=how.models_root, images=f"{how.services_root}/images")
    request = document(
        PeerServerRequest(
            how.peer_port, peer_keys.SERVED, roots, _IDLE, certificate=how.certificate
        )
    )
    state = f"{how.services_root}/state/peers"
    root = f"{how.services_root}/{peer_unit.ROOT}"

    def units(name: str) -> dict[str, str]:
        place = f"{state}/{name}.json"
        return {
            f"{name}.socket": peer_unit.socket_text(name, how.peer_port, how.addresses),
            f"{name}.service": peer_unit.service_text(
                name,
                runtime.command(home, "peer-server", place),
                root,
                (home, place, roots.models, roots.images, peer_keys.SERVED),
                MODEST,
            ),
        }

    digest = hashlib.sha256(f"{request}{units('')}".encode()).hexdigest()
    unit = f"sparkwright-share-{digest[:12]}"
    return Job(
        unit=unit,
        description="sparkwright: serve models and images to other hosts",
        argv=(),
        units=units(unit),
        files={f"{state}/{unit}.json": request},
        directories=(root, roots.models, roots.images, peer_keys.SERVED),
        instead_of="sparkwright-share-*",
    )
