"""Peers: hosts download from each other what one of them has or fetches.

Decided once all hosts were observed. A host that seeds, or that needs an image, runs a peer server
(sparkwright/host/fetch/peer_server.py) as a job that ends when it is idle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.contents import contents, missing_images
from roles.sharing import controller
from roles.weights import runtime
from sparkwright.host import jobs as jobs_program
from sparkwright.host.contracts.fetch import PeerRoots, PeerServerRequest
from sparkwright.plan.peers import peers

#: Seconds without a request after which a peer server ends.
_IDLE = 900
#: The server may read below its two roots and answer, nothing else.
_PROPERTIES = (
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "MemoryMax=512M",
)


def sharing() -> None:
    """Start peer servers on the hosts that peers, or their own Docker, download from."""
    steps.together("Peers: hosts download from each other", _act)


def peers_of(run: site.HostRun, content: str) -> list[str]:
    """Addresses of the peers that this host downloads a model or image from, the best first."""
    settings = run.plan.settings
    if settings.bundle:
        return [controller.share(settings.bundle, settings.seeding_port, run.connection)]
    return [address for name in _leeches(content).get(run.plan.host, []) if (address := _at(name))]


def seeds(run: site.HostRun, content: str) -> bool:
    """Whether this host is the first choice of another one."""
    return any(others[:1] == [run.plan.host] for others in _leeches(content).values())


def token_file(run: site.HostRun) -> str:
    """The file on the host with the token of the peers."""
    return f"{run.plan.settings.services_root}/state/share-token"


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    seeding = [content for content in contents(run) if seeds(run, content)]
    if not seeding and not missing_images(run):
        return []
    settings = run.plan.settings
    home = runtime.ensure(host, run)
    request = PeerServerRequest(
        port=settings.seeding_port,
        token_file=token_file(run),
        roots=PeerRoots(settings.models_root, f"{settings.services_root}/images"),
        idle=_IDLE,
    )
    # A changed program or setting is another job; it replaces the old one.
    unit = f"sparkwright-share-{hashlib.sha256(f'{home}{request}'.encode()).hexdigest()[:12]}"
    document = f"{settings.services_root}/state/{unit}/request.json"
    job = {
        "unit": unit,
        "description": "sparkwright: peer server for models and images",
        "argv": runtime.command(home, "peer-server", document),
        "files": {document: json.dumps(asdict(request))},
        "properties": _PROPERTIES,
        "instead_of": "sparkwright-share-*",
    }
    secrets = {token_file(run): site.share_token()}
    remote.ask(host, "sparkwright-jobs", jobs_program, {"start": [job], "secrets": secrets})
    return [f"seeds {content}" for content in sorted(seeding)]


def _leeches(content: str) -> dict[str, list[str]]:
    """Who downloads this content from whom: decided at the first call, for the whole run."""
    if not _decided:
        _decided.update(_decide())
    return _decided.get(content, {})


_decided: dict[str, dict[str, list[str]]] = {}


def _decide() -> dict[str, dict[str, list[str]]]:
    wanting: dict[str, list[str]] = {}
    holding: dict[str, list[str]] = {}
    for name, run in site.live().items():
        if not run.plan.settings.seeding or _at(name) is None:
            continue
        for content, missing in contents(run).items():
            side = wanting if missing else holding
            side.setdefault(content, []).append(name)
    return {
        content: peers(names, holding.get(content, []), turn)
        for turn, (content, names) in enumerate(sorted(wanting.items()))
    }


def _at(name: str) -> str | None:
    run = site.live().get(name)
    if run is None:
        return None
    settings = run.plan.settings
    address = settings.lan_address or (run.connection[1] if run.connection else None)
    return f"http://{address}:{settings.seeding_port}" if address else None
