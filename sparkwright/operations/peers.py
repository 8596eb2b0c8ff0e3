"""Peer sharing: a host serves content that it has or is fetching to other hosts, so that the fleet
downloads each byte only once.

The server is a job that ends after some time without requests. A host's own Docker also pulls
images from this server, even while their parts arrive.
"""

import hashlib
from collections.abc import Callable, Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host, ctx_state

from sparkwright.config.templates import template
from sparkwright.host.fetch.request import PeerServerRequest, document
from sparkwright.host.jobs import MODEST, Job
from sparkwright.host.lib.systemd import TRANSIENT
from sparkwright.operations.files import show
from sparkwright.operations.lib import jobs, runtime
from sparkwright.operations.lib.changing import Commands, change, operation
from sparkwright.operations.lib.fetching import Sources, defaults
from sparkwright.plan import lan, peer_keys

#: Seconds without a request after which the server ends.
_IDLE = 900


@operation()
def serving(contents: Callable[[], Sequence[str]], *, sources: Sources | None = None) -> Commands:
    """Serve models and images to other hosts, until no host has requested a file for a while.

    Args:
        contents: function that returns the contents that other hosts will request, as text; without
            contents no server is started. The function is called when the operation runs: its
            result depends on the observed content of all hosts.
        sources: port, addresses and keys of the server.

    **Example:**

    .. code:: python

        peers.serving(contents=lambda: ["Qwen/Qwen3-0.6B"])
    """
    how = sources or defaults(ctx_host.get())

    def act(host: Host) -> Sequence[str]:
        home = runtime.ensure(host, how.services_root, how.bundle)
        job = server_job(home, how)
        show({f"{TRANSIENT}/{name}": (text, 0o644) for name, text in job.units.items()})
        jobs.start(host, [job], how.server_secrets(host.name))
        return [f"serves {content} to other hosts" for content in contents()]

    asked = contents() if ctx_state.get().is_executing else ()
    yield from change(
        [f"serve {content} to other hosts" for content in asked], act,
        otherwise="no other host requests files from this host", forget=False,
    )  # fmt: skip


def server_job(home: str, how: Sources) -> Job:
    """Return the job of a host's peer server. A changed program or setting makes another job, which
    replaces the old job.
    """
    models, images = how.models_root, f"{how.services_root}/images"
    request = document(
        PeerServerRequest(peer_keys.SERVED, models, images, _IDLE, certificate=how.certificate)
    )
    state = f"{how.services_root}/state/peers"
    root = f"{state}/root"

    def units(name: str) -> dict[str, str]:
        path = f"{state}/{name}.json"
        context = {
            "unit": name,
            "addresses": [lan.at(each, how.peer_port) for each in ("127.0.0.1", *how.addresses)],
            "command": " ".join(runtime.command(home, "peer-server", path)),
            "root": root,
            "places": " ".join((home, path, models, images, peer_keys.SERVED)),
            "modest": "\n".join(MODEST),
        }
        return {
            f"{name}.{kind}": template(f"peers/{file}.{kind}.j2").render(context)
            for file, kind in (("port", "socket"), ("server", "service"))
        }

    digest = hashlib.sha256(f"{request}{units('')}".encode()).hexdigest()
    unit = f"sparkwright-share-{digest[:12]}"
    return Job(
        unit=unit,
        description="sparkwright: serve models and images to other hosts",
        argv=(),
        units=units(unit),
        files={f"{state}/{unit}.json": request},
        directories=(root, models, images, peer_keys.SERVED),
        instead_of="sparkwright-share-*",
    )
