"""Ranks: the parts of one service that the hosts of a cluster serve together.

The head is rank 0: only the head has the key, the proxy and clients.
"""

from collections.abc import Iterator

from sparkwright.catalog import ArgumentValue, Image, Recipe
from sparkwright.config.clusters import ClusterSettings
from sparkwright.config.fabric import FabricAddresses
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.engines.engine import Engine, Rank
from sparkwright.findings.user_error import Fault, suggest
from sparkwright.host.ranks.collective import plain_environment
from sparkwright.plan.tags import MESSAGES


def rank_environment(rank: Rank, engine: Engine) -> dict[str, str]:
    """Variables by which an engine and its libraries reach the other ranks, as far as they are
    planned: with ConnectX-7 the host determines them at each start (``host/ranks/collective.py``).
    """
    result = {**plain_environment(rank.interface), **engine.rank_environment(rank)}
    if rank.shape is None:
        return result
    names = {key: value for key, value in result.items() if not key.startswith("NCCL_")}
    return {**names, "NCCL_SOCKET_IFNAME": rank.interface}


def rank_of(host: str, service: ServiceSettings, settings: HostSettings) -> Rank | None:
    """Return the host's rank in a service; None for a service on one host, or if the rank is
    unknown.
    """
    cluster = settings.clusters.get(service.cluster or "")
    if cluster is None or host not in cluster.hosts:
        return None
    return Rank(
        cluster=service.cluster or "",
        number=cluster.hosts.index(host),
        hosts=cluster.hosts,
        addresses=tuple(cluster.addresses[name] for name in cluster.hosts),
        interface=cluster.interface or "",
        shape=_shape(cluster, settings.fabric_addresses) if cluster.fabric == "cx7" else None,
        port=cluster.port,
    )


def _shape(cluster: ClusterSettings, given: FabricAddresses | None) -> str:
    """Return the cabling of a service's hosts, from the setting that gives them their addresses."""
    if given is not None and set(given.hosts) == set(cluster.hosts):
        return given.shape
    return "pair" if len(cluster.hosts) == 2 else "switch"


def sizes(recipe: Recipe, service: ServiceSettings, engine: Engine) -> dict[str, ArgumentValue]:
    """Arguments that a recipe's ranks set."""
    if recipe.ranks is None or service.cluster is None:
        return {}
    result = {argument: getattr(recipe.ranks, name) for argument, name in engine.parallel.items()}
    return {argument: size for argument, size in result.items() if size > 1}


def problems(
    host: str,
    service: ServiceSettings,
    recipe: Recipe,
    image: Image,
    settings: HostSettings,
    engine: Engine,
) -> Iterator[Fault]:
    """Faults in a service's cluster, found in the settings of one of its hosts."""
    ranks, name = recipe.ranks, service.cluster
    if name is None:
        if ranks is not None and ranks.world > 1:
            there = ", ".join(settings.clusters) or "no cluster is set in group_data/all.py"
            facts = {"recipe": recipe.name, "world": ranks.world, "clusters": there}
            yield MESSAGES.fault("ranks-without-cluster", "cluster", **facts)
        return
    cluster = settings.clusters.get(name)
    if cluster is None:
        near = suggest(name, list(settings.clusters))
        near = near if settings.clusters else f"define clusters.{name}.hosts (docs/clusters.md)"
        yield MESSAGES.fault("no-cluster", "cluster", name=name, near=near)
        return
    if host not in cluster.hosts:
        members = ", ".join(cluster.hosts)
        yield MESSAGES.fault("not-a-member", "cluster", host=host, name=name, members=members)
    if ranks is None:
        yield MESSAGES.fault("recipe-of-one-host", "recipe", recipe=recipe.name)
    elif ranks.world != len(cluster.hosts) * len(service.gpus or "1"):
        number = len(cluster.hosts)
        yield MESSAGES.fault(
            "unlike-ranks", "cluster", recipe=recipe.name, ranks=ranks, number=number
        )
    yield from _unfit(service, recipe, image, engine)


def _unfit(
    service: ServiceSettings, recipe: Recipe, image: Image, engine: Engine
) -> Iterator[Fault]:
    """Settings that a service of a cluster must not have."""
    if image.variables is not None:
        yield MESSAGES.fault("own-entrypoint", "recipe", image=image.name, program=engine.program)
    if service.exclusive is not None:
        yield MESSAGES.fault("exclusive-ranks", "exclusive")
    if service.hardening == "strict":
        yield MESSAGES.fault("strict-ranks", "hardening")
    written = {**recipe.arguments, **service.arguments}
    for argument, size in engine.parallel.items():
        if written.get(argument) is not None:
            yield MESSAGES.fault("size-of-ranks", f"arguments.{argument}", size=size)
    for argument, problem, remedy in engine.rank_misuses(written):
        yield f"arguments.{argument}", problem, remedy
