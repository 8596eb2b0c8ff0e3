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

from sparkwright.host.contracts.fetch import PeerRoots, PeerServerRequest
from sparkwright.host.contracts.jobs import Job
from sparkwright.host.fetch.request import document
from sparkwright.operations import jobs, runtime
from sparkwright.operations.changing import Commands, change, operation
from sparkwright.operations.fetching import Sources, job_state

#: Seconds without a request after which the server ends.
_IDLE = 900
#: What the server needs beyond the sandbox of every unit.
_PROPERTIES = (
    # Parts that a fetch writes are for its owner alone.
    "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
    # Whether a fetch still runs is seen at its process.
    "ProtectProc=default",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    # A thread for each connection.
    "TasksMax=512",
    "MemoryMax=512M",
)


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
        sources: port and token of the server.
        break_lock: whether to take the lock from another run.
    """
    how = sources or Sources()

    def act(host: Host) -> Sequence[str]:
        home = runtime.ensure(host, how.services_root, how.bundle)
        secrets = {how.peer_token_file: how.peer_token.value}
        jobs.start(host, [server_job(home, how)], secrets)
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
    request = PeerServerRequest(
        port=how.peer_port, token_file=how.peer_token_file, roots=roots, idle=_IDLE
    )
    text = document(request)
    unit = f"sparkwright-share-{hashlib.sha256(f'{home}{text}'.encode()).hexdigest()[:12]}"
    place = f"{job_state(how.services_root, unit)}/request.json"
    return Job(
        unit=unit,
        description="sparkwright: serve models and images to other hosts",
        argv=runtime.command(home, "peer-server", place),
        files={place: text},
        properties=_PROPERTIES,
        instead_of="sparkwright-share-*",
    )
