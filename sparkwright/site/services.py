"""The services of a host as they must run there: release, key, gate, place behind the proxy."""

from __future__ import annotations

from sparkwright.checks.smoke import smoke_request
from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.engines import engine, metric_names
from sparkwright.host.directories import Directory
from sparkwright.host.lib.ranks import RankConfig
from sparkwright.host.ranks.link import KEY
from sparkwright.host.release import ReleaseNote
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.ranks import rank_environment
from sparkwright.plan.release import Release
from sparkwright.plan.services import DesiredService
from sparkwright.proxy.haproxy import Proxies
from sparkwright.proxy.proxies import leave_and_return

#: Requests after a start, before a service counts as ready: the first ones compile kernels.
WARM_UPS = 2

#: What starts the engine of a rank: its unit's main process is the rank's program.
_UP = (
    *("/usr/bin/docker", "compose", "--ansi", "never", "up", "--pull", "never", "--no-color"),
    *("--no-log-prefix", "--abort-on-container-exit", "--exit-code-from", "engine"),
)


def desired_services(
    desired: Desired, keys: Keys, proxies: Proxies | None, others: frozenset[str]
) -> tuple[DesiredService, ...]:
    """Every service of a host.

    Args:
        others: its services that other hosts serve too, behind one address.
    """
    return tuple(_service(desired, one, keys, proxies, others) for one in desired.releases)


def _service(
    desired: Desired, release: Release, keys: Keys, proxies: Proxies | None, others: frozenset[str]
) -> DesiredService:
    service = release.service
    gate = smoke_request(release, warm_ups=WARM_UPS)
    rank = service.rank
    known = Secret(f"{KEY}={keys.ranks[rank.cluster].value}\n") if rank else None
    # Behind a proxy no client's key is the engine's: they change without a restart.
    key = keys.engine if service.proxy else keys.default
    own_key = Secret(f"{engine(service.engine).key_variable}={key.value}\n")
    pool = None
    if service.proxy and proxies:
        rollout = desired.plan.settings.rollout
        pool = leave_and_return(proxies, rollout, service.name, others=service.name in others)
    return DesiredService(
        name=service.name,
        home=release.home,
        release=release.id,
        compose=release.compose,
        unit_text=release.unit,
        image=release.image,
        # A follower answers nobody: it has no key.
        environment=known if known and service.follower else own_key,
        gate=gate,
        note=ReleaseNote(
            tag=service.image.tag,
            image=release.image,
            recipe=service.recipe,
            models=dict(release.models),
            served_names=service.served_names,
            gate=gate,
        ),
        ports=()
        if service.follower
        else (service.port, *((service.proxy.port,) if service.proxy else ())),
        soak_seconds=desired.plan.settings.rollout.soak_seconds,
        second_boot=desired.plan.settings.second_boot and service.container.boot_caches,
        pool=pool,
        exclusive=service.exclusive,
        on_request=service.on_request,
        members=desired.plan.groups.get(service.exclusive or "", ()),
        rank=_rank(desired, release) if rank else None,
        ranks_key=known,
    )


def _rank(desired: Desired, release: Release) -> RankConfig:
    """What its program on the host goes by."""
    service, rank = release.service, release.service.rank
    assert rank is not None
    return RankConfig(
        service=service.name,
        unit=service.unit,
        release=release.id,
        home=release.home,
        number=rank.number,
        hosts=rank.hosts,
        addresses=rank.addresses,
        port=rank.port,
        secrets=release.secrets if service.follower else f"{release.home}/ranks.env",
        command=_UP,
        model=service.served_names[0],
        engine_port=service.port,
        boot_seconds=float(service.boot_seconds),
        shared=rank.shape is None,
        shape=rank.shape,
        environment=rank_environment(rank, engine(service.engine)),
        metric_names=metric_names(),
    )


def directories(plan: HostPlan) -> tuple[Directory, ...]:
    """The directories of a host, parents first. The first one, of the models, may be a file system
    of its own or belong to the user: it is made when it is not there, and else left alone."""
    root = plan.settings.services_root
    found = [Directory(plan.settings.models_root), Directory(root)]
    found += [Directory(f"{root}/{name}") for name in ("services", "runtime")]
    found += [Directory(f"{root}/{name}", 0o700) for name in ("state", "images")]
    for service in plan.services:
        home = f"{root}/services/{service.name}"
        found += [Directory(home, 0o750), Directory(f"{home}/releases", 0o750)]
    return tuple(found)
