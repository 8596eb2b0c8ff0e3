"""Sources of models and images in a run, decided for the whole run after all observations.

Hosts with a common network of ConnectX-7 ports share weights and images over this network, or over
the LAN if the network does not answer.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path
from threading import Lock

from sparkwright.config.fabric import FabricAddresses
from sparkwright.facts.asking import HostError
from sparkwright.findings.user_error import UserError
from sparkwright.host.fabric import NAME
from sparkwright.host.fetch import steps
from sparkwright.host.fetch.request import BuildFile, ImageBuild
from sparkwright.operations.lib.fetching import Sources
from sparkwright.plan import desired, uplink
from sparkwright.plan.lan import at
from sparkwright.plan.missing import shared
from sparkwright.plan.peer_keys import Peer
from sparkwright.plan.peers import peers
from sparkwright.resolve import build_context
from sparkwright.run import bundle_server
from sparkwright.run.state import HostRun, Run
from sparkwright.text.sizes import GIB

#: Lock under which the first host fills the cache; all other hosts use the filled cache.
_FETCHING = Lock()
#: Prefix length of networks without a setting, as in published guides for these ports.
_USUAL = 24


def sources(run: Run, host_run: HostRun, content: str | None = None) -> Sources:
    """Return a host's sources of a model or image, from its settings and other hosts' files."""
    settings = host_run.settings
    limit = settings.download_limit_mb
    return Sources(
        models_root=settings.models_root,
        services_root=settings.services_root,
        peers=lambda: tuple(_addresses(run, host_run, content or "")),
        peer_keys=run.peer_keys,
        peer_port=settings.peer_port,
        addresses=_served_on(host_run),
        tls=host_run.peer_certificate.pem if host_run.peer_certificate else None,
        token=host_run.token,
        bundle=settings.bundle,
        downloader=settings.downloader,
        connections=settings.download_connections,
        limit=limit * 1e6 if limit else None,
        headroom=int(settings.disk_headroom_gib * GIB),
        adopt=tuple(settings.adopt_directories),
        environment=uplink.environment(settings),
        keep_parts=lambda: _is_asked(run, host_run, content or ""),
    )


def build_of(host_run: HostRun, image: desired.DesiredImage) -> Callable[[], ImageBuild] | None:
    """Return a function that fetches the context of a built image; None for a pulled image."""
    planned = image.planned.build
    if planned is None:
        return partial(_derivation, image) if image.planned.steps else None
    commit = image.resolved.commit
    assert commit is not None, "a built image is resolved to a commit"
    bundle = host_run.settings.bundle
    cache = Path(bundle, "build") if bundle else build_context.CACHE

    def build() -> ImageBuild:
        try:
            with _FETCHING:
                files = build_context.build_context(
                    planned.context, commit, planned.directory, cache
                )
            build_context.verify(files, image.resolved.context, carried=bundle is not None)
        except UserError as error:
            raise HostError(error.findings[0].observed) from None
        return ImageBuild(
            planned.base_name, {path: BuildFile(*item) for path, item in files.items()}
        )

    return build


def _derivation(image: desired.DesiredImage) -> ImageBuild:
    """Return the build context of an image that steps derive from the pulled image."""
    own = image.planned.steps
    assert own is not None, "a derived image has steps"
    base = image.resolved.local_name(replace(image.planned, steps=None))
    texts = {"Dockerfile": f"FROM {base}\nADD layer.tar /\n", "steps.json": own.text}
    files = {name: text.encode() for name, text in texts.items()} | dict(own.files)
    files["steps.py"] = Path(steps.__file__).read_bytes()
    encoded = {name: BuildFile(b64encode(content).decode()) for name, content in files.items()}
    return ImageBuild(base, encoded, steps=True)


def asked_for(run: Run, host_run: HostRun) -> list[str]:
    """Return the contents that other hosts will request from this host first."""
    return sorted(
        content
        for content in shared(host_run.desired, host_run.observed)
        if _is_asked(run, host_run, content)
    )


def described(run: Run) -> Iterator[str]:
    """Yield a line for each content that a host would serve to other hosts."""
    for item in run.live():
        for content in asked_for(run, item):
            yield f"{item.name} would serve {content} to other hosts"


def _served_on(host_run: HostRun) -> tuple[str, ...]:
    """Return the addresses on which a host serves other hosts; empty without peer sharing."""
    if not host_run.settings.peer_sharing:
        return ()
    seen = host_run.memory.observation
    more = rails(seen.addresses) if seen and host_run.lan_addresses else ()
    return tuple(dict.fromkeys((*host_run.lan_addresses, *more)))


def _addresses(run: Run, host_run: HostRun, content: str) -> Iterator[Peer]:
    settings = host_run.settings
    if settings.bundle:
        if host_run.connection is None:
            raise HostError(
                "a host fetches a bundle directly from the controller, which a jump host prevents: "
                "run pyinfra on the jump host"
            )
        if ip_address(host_run.connection[0].partition("%")[0]).is_link_local:
            raise HostError(
                "a host fetches a bundle from the controller, but this host was reached at an "
                "address that only one interface can use (fe80::...): set ssh_hostname to its IPv4 "
                "address or to another IPv6 address"
            )
        yield bundle_server.serve(
            settings.bundle, host_run.connection[0], settings.peer_port, run.peer_keys
        )
        return
    live = {other.name: other for other in run.live()}
    for name in _decided(run).get(content, {}).get(host_run.name, []):
        if name in live and (address := live[name].peer_address):
            certificate = live[name].peer_certificate
            identity = certificate.identity if certificate else None
            for near in _by_rails(host_run, live[name]):
                yield Peer(name, near, identity)
            yield Peer(name, address, identity)


def _by_rails(host_run: HostRun, other: HostRun) -> Iterator[str]:
    """Yield the URLs at which another host serves this host over the fabric.

    There are no URLs if the other host's certificate has only LAN addresses.
    """
    certificate = other.peer_certificate
    if certificate and certificate.identity.name is None:
        return
    wanted, port = host_run.settings.fabric_addresses, other.settings.peer_port
    scheme = "https" if certificate else "http"
    for near in towards(host_run.observed.addresses, other.observed.addresses, wanted):
        yield f"{scheme}://{at(near, port)}"


def _is_asked(run: Run, host_run: HostRun, content: str) -> bool:
    """Return whether this host is another host's first choice."""
    leeches = _decided(run).get(content, {}).values()
    return any(others[:1] == [host_run.name] for others in leeches)


def _decided(run: Run) -> dict[str, dict[str, list[str]]]:
    """Return content -> host -> hosts that serve the content to this host."""
    if run.takes_from is None:
        run.takes_from = _decide(run)
    return run.takes_from


def _decide(run: Run) -> dict[str, dict[str, list[str]]]:
    wanting: dict[str, list[str]] = {}
    holding: dict[str, list[str]] = {}
    for item in run.live():
        if not item.settings.peer_sharing or item.peer_address is None:
            continue
        for content, missing in shared(item.desired, item.observed).items():
            side = wanting if missing else holding
            side.setdefault(content, []).append(item.name)
    return {
        content: peers(names, holding.get(content, []), turn)
        for turn, (content, names) in enumerate(sorted(wanting.items()))
    }


def rails(own: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return a host's reported IPv4 addresses on ConnectX ports, in the order of the interfaces."""
    return tuple(
        address
        for interface, every in sorted(own.items())
        if NAME.fullmatch(interface)
        for address in every
        if _is_private(address)
    )


def towards(
    mine: Mapping[str, tuple[str, ...]],
    theirs: Mapping[str, tuple[str, ...]],
    wanted: FabricAddresses | None,
) -> Iterator[str]:
    """Yield another host's addresses within the networks of this host's rails.

    Other addresses are ignored, since a host may report any address.
    """
    own = rails(mine)
    reached = [_network(address, wanted) for address in own]
    for other in rails(theirs):
        if any(IPv4Address(other) in network for network in reached) and other not in own:
            yield other


def _network(address: str, wanted: FabricAddresses | None) -> IPv4Network:
    at = IPv4Address(address)
    named = (network for network in (wanted.networks if wanted else ()) if at in network)
    return next(named, IPv4Network((address, _USUAL), strict=False))


def _is_private(address: str) -> bool:
    try:
        at = IPv4Address(address)
    except ValueError:
        return False
    return at.is_private and not (at.is_loopback or at.is_link_local)
