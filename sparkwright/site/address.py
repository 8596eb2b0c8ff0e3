"""The address for all models: its pools, its document, and mistakes of keys and models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sparkwright.engines import engine
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, suggest
from sparkwright.host.models.document import USAGE, Door, Key, Model
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy.pools import Everyone, PlannedPool, planned_pools, unverified
from sparkwright.site.fleet import PlannedHost

_MESSAGES = Messages(__file__)


def addresses(everyone: Everyone) -> tuple[str, ...]:
    """Hosts of the inventory that have an address for all models."""
    return tuple(host for host, data in everyone.items() if data.get("address") is not None)


def door_of(
    plan: HostPlan,
    pools: Iterable[PlannedPool],
    every: Mapping[str, PlannedHost],
    everyone: Everyone,
    socket: str,
) -> Door | None:
    """The document of a host's address for all models; None for a host without an address.

    Args:
        pools: pools of all hosts.
        every: all hosts of the inventory.
        socket: HAProxy's socket with all pools.
    """
    if plan.settings.address is None:
        return None
    models = {}
    for pool in pools:
        host, service = next(iter(pool.services.items()))
        for name in pool.names:
            limits = engine(service.engine).limits(dict(service.arguments))
            context = limits.context or every[host].catalog.models[service.body.name].context
            models[name] = Model(pool.name, kind_of(service), context, bool(pool.wakes))
    keys = {
        name: Key(**{limit: getattr(key, limit) for limit in Key.__annotations__})
        for name, key in plan.settings.keys.items()
        if key.limited
    }
    peers = tuple(host for host in addresses(everyone) if host != plan.host)
    return Door(plan.host, dict(sorted(models.items())), USAGE, socket, keys, peers)


def kind_of(service: ServicePlan) -> str:
    """The kind of requests that a service answers."""
    kinds = engine(service.engine).kinds(dict(service.arguments), service.task)
    return next(iter(kinds), service.task)


def address_problems(planned: Mapping[str, PlannedHost], everyone: Everyone) -> Iterator[Finding]:
    """Faults of addresses for all models, and of keys' rights and limits.

    Args:
        planned: hosts that can be planned; a check that needs all hosts runs only if no host is
            missing.
    """
    plans = [host.plan for host in planned.values()]
    named = addresses(everyone)
    pools = planned_pools(plans) if named and planned.keys() >= everyone.keys() else None
    if pools is not None:
        yield from unverified(pools)
        yield from _unlike(pools)
    names = sorted(name for pool in pools or () for name in pool.names)
    for plan in plans:
        settings, host = plan.settings, plan.host
        page = settings.address and settings.address.open_webui
        if page and page.key not in settings.keys:
            yield _MESSAGES.mistake("no-page-key", "address.open_webui.key", host, key=page.key)
        if settings.address and pools == ():
            yield _MESSAGES.mistake("address-of-nothing", "address", host)
        for name, key in settings.keys.items():
            if key.limited and not named:
                yield _MESSAGES.mistake("limits-without-address", f"keys.{name}", host)
            for model in set(key.models or ()).difference(names) if pools is not None else ():
                facts = {"name": model, "near": suggest(model, names)}
                yield _MESSAGES.mistake("no-such-model", f"keys.{name}.models", host, **facts)


def _unlike(pools: Sequence[PlannedPool]) -> Iterator[Finding]:
    """Names that stand for services of different kinds."""
    for pool in pools:
        (first, service), *more = pool.services.items()
        for host, other in more:
            kinds = kind_of(service), kind_of(other)
            if kinds[0] != kinds[1]:
                facts = {"name": pool.names[0], "kind": kinds[1], "other": first, "kinds": kinds[0]}
                where = f"services.{other.name}.served_names"
                yield _MESSAGES.mistake("unlike-kinds", where, host, **facts)
