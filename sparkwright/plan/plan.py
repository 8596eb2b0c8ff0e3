"""The plan: the desired state of each host, decided before the first host is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparkwright.catalog import ArgumentValue, Catalog, Image, Model, Needs, Recipe, Variables
from sparkwright.config.settings import (
    LOOPBACK,
    PROXY_STEP,
    HostSettings,
    ServiceSettings,
    SmokeSettings,
)
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.derivation import Derivation, DerivedFact
from sparkwright.engines.engine import Engine, Rank
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.plan import ranks, schedule
from sparkwright.plan.container import ContainerPlan, plan_container
from sparkwright.plan.tags import chosen_tag, no_such_tag
from sparkwright.resolve.references import (
    BuildReference,
    ImageReference,
    ModelReference,
    References,
)


@dataclass(frozen=True)
class ProxyPlan:
    """What stands before a service: where clients connect, and where its health is reported."""

    bind: str
    port: int
    health_port: int


@dataclass(frozen=True)
class ServicePlan:
    """A service with every setting resolved; what the network decides is still open.

    Attributes:
        engine: name of the engine in its image.
        port, bind: where its engine listens.
        proxy: where clients come in, when that is not there.
        gpus: indexes and UUIDs of what its container gets; empty for every GPU of the host.
        silenced: rule -> the user's reason for silencing it on this service.
        origins: ``argument.<name>``, ``environment.<NAME>`` and the like -> where it comes from.
        derived: what was read from the model's own files, where no recipe says it.
        exclusive: the group of which it is one.
        on_request: whether a client's request activates it.
        rank: its place among the hosts that serve it together; None for a service of one host.
    """

    name: str
    recipe: str
    title: str
    engine: str
    port: int
    bind: str
    served_names: tuple[str, ...]
    image: ImageReference
    image_unpacked_gib: float
    entrypoint: str
    variables: Variables | None
    body: ModelReference
    drafter: ModelReference | None
    arguments: tuple[tuple[str, ArgumentValue], ...]
    environment: tuple[tuple[str, str], ...]
    shm_gib: float | None
    memlock: bool
    container: ContainerPlan
    needs: Needs
    boot_seconds: int
    first_answer_seconds: int
    smoke: SmokeSettings
    silenced: tuple[tuple[str, str], ...]
    origins: Mapping[str, str]
    proxy: ProxyPlan | None = None
    gpus: tuple[str, ...] = ()
    derived: tuple[DerivedFact, ...] = ()
    exclusive: str | None = None
    on_request: bool = False
    rank: Rank | None = None

    @property
    def follower(self) -> bool:
        """Whether another host answers for it."""
        return self.rank is not None and not self.rank.head

    def at_rank(self, number: int) -> ServicePlan:
        """The same service as another host of its cluster has it."""
        assert self.rank is not None
        rank = replace(self.rank, number=number)
        if rank.head:
            return replace(self, rank=rank)
        return replace(self, rank=rank, proxy=None, bind=LOOPBACK)

    @property
    def client_port(self) -> int:
        """The port that clients use."""
        return self.proxy.port if self.proxy else self.port

    @property
    def client_bind(self) -> str:
        """The address that clients connect to; ``0.0.0.0`` is every one of the host's."""
        return self.proxy.bind if self.proxy else self.bind

    @property
    def models(self) -> tuple[ModelReference, ...]:
        """Body and drafter."""
        return (self.body, self.drafter) if self.drafter else (self.body,)

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"


@dataclass(frozen=True)
class Pins:
    """How firmly the revisions of a host's models are known.

    Attributes:
        locked: whether its lock file is there.
        python: model's name in the catalog -> Python files of its commit; None before that is
            known.
    """

    locked: bool = False
    python: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class HostPlan:
    """What is planned for one host."""

    host: str
    settings: HostSettings
    services: tuple[ServicePlan, ...]
    pins: Pins = Pins()

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The services of each exclusive group, as they are written: the first is the default."""
        found: dict[str, tuple[str, ...]] = {}
        for name, service in self.settings.services.items():
            if service.exclusive:
                found[service.exclusive] = (*found.get(service.exclusive, ()), name)
        return found

    def largest(self, needs: Mapping[str, float]) -> float:
        """The sum of what services need, of each exclusive group its largest alone.

        Args:
            needs: by service.
        """
        groups = {one.name: one.exclusive or f" {one.name}" for one in self.services}
        most: dict[str, float] = {}
        for name, need in needs.items():
            most[groups[name]] = max(need, most.get(groups[name], 0.0))
        return sum(most.values())

    @property
    def references(self) -> References:
        """What its services name, and where that is asked for."""
        return References(
            images=tuple(service.image for service in self.services),
            models=tuple(model for service in self.services for model in service.models),
            hub_endpoint=self.settings.hub_endpoint,
            registry_auth=self.settings.registry_auth_source,
        )


def plan_host(
    host: str,
    settings: HostSettings,
    catalog: Catalog,
    origin: Callable[[str], str],
    derivations: Mapping[str, Derivation] = MappingProxyType({}),
) -> HostPlan:
    """Join settings and catalog.

    Args:
        derivations: service -> where the values of its recipe come from, which was derived.
        origin: file that a top-level key of the settings comes from, for messages.

    Raises:
        UserError: every problem of this host.
    """
    problems: list[Finding] = []
    services: list[ServicePlan] = []
    where = f"{origin('services')}: services"
    for name, service in sorted(settings.services.items()):
        recipe = catalog.recipes.get(service.recipe or "")
        if recipe is None:
            problems.append(
                mistake(
                    f"{where}.{name}.recipe",
                    f"no such recipe: {service.recipe!r}",
                    suggest(service.recipe or "", list(catalog.recipes)),
                    host,
                )
            )
            continue
        image = catalog.images[recipe.image]
        if image.engine not in ENGINES:
            problem, remedy = f"no such engine: {image.engine!r}", suggest(image.engine, [*ENGINES])
            problems.append(mistake(f"image {image.name}: engine", problem, remedy, host))
            continue
        tag, key = chosen_tag(service, settings, recipe, image, f"{where}.{name}.image_tag", origin)
        allowed = recipe.tags or tuple(image.tags)
        if tag not in image.tags or tag not in allowed:
            problems.append(no_such_tag(key, tag, recipe, image, catalog, host))
            continue
        planned = _plan_service(
            host,
            name,
            service,
            recipe,
            image,
            tag,
            settings,
            catalog,
            origin,
            derivations.get(name),
        )
        services.append(planned)
        own = engine(image.engine)
        problems.extend(
            ranks.problems(host, f"{where}.{name}", service, recipe, image, settings, own)
        )
        problems.extend(_misuses(host, planned, own))
    problems.extend(_twice(host, services, where))
    problems.extend(_woken(host, settings, where))
    problems.extend(schedule.problems(host, settings, origin("schedule")))
    if problems:
        raise UserError(problems)
    return HostPlan(host, settings, tuple(services))


def _misuses(host: str, service: ServicePlan, engine: Engine) -> Iterator[Finding]:
    """Arguments and variables that repeat a setting."""
    for key, problem, remedy in engine.misplaced(dict(service.arguments)):
        yield mistake(_written(service, "argument", key), problem, remedy, host)
    if service.variables:
        for key, problem, remedy in engine.refused(service.variables, dict(service.environment)):
            yield mistake(_written(service, "environment", key), problem, remedy, host)


def _written(service: ServicePlan, kind: str, name: str) -> str:
    """Where an argument or a variable of a service is written."""
    origin = service.origins[f"{kind}.{name}"]
    group = {"argument": "arguments"}.get(kind, kind)
    return f"{origin}{'.' if ': ' in origin else ': '}{group}.{name}"


_Layer = tuple[Mapping[str, ArgumentValue | None], Mapping[str, str | None], str]


def _plan_service(
    host: str,
    name: str,
    service: ServiceSettings,
    recipe: Recipe,
    image: Image,
    tag: str,
    settings: HostSettings,
    catalog: Catalog,
    origin: Callable[[str], str],
    derivation: Derivation | None,
) -> ServicePlan:
    own = f"{origin('services')}: services.{name}"
    arguments: dict[str, ArgumentValue | None] = {}
    environment: dict[str, str | None] = {}
    origins: dict[str, str] = {}
    layers: list[_Layer] = [(recipe.arguments, recipe.environment, f"recipe {recipe.name}")]
    if change := recipe.by_tag.get(tag):
        layers.append((change.arguments, change.environment, f"recipe {recipe.name}, tag {tag}"))
    layers.append((service.arguments, service.environment, own))
    for number, (layer_arguments, layer_environment, source) in enumerate(layers):
        arguments.update(layer_arguments)
        environment.update(layer_environment)
        said = derivation.arguments if derivation and number == 0 else {}
        origins.update({f"argument.{key}": said.get(key, source) for key in layer_arguments})
        origins.update({f"environment.{key}": source for key in layer_environment})
        if image.variables:
            engine(image.engine).read_back(image.variables, arguments, environment, origins)
    for key in ServiceSettings.model_fields:
        origins[key] = own if key in service.model_fields_set else f"recipe {recipe.name}"
    if spread := ranks.sizes(recipe, service, engine(image.engine)):
        arguments.update(spread)
        origins.update({f"argument.{key}": f"recipe {recipe.name}, ranks" for key in spread})
    models = catalog.models
    planned = ServicePlan(
        name=name,
        recipe=recipe.name,
        title=recipe.title,
        engine=image.engine,
        port=service.port + PROXY_STEP if service.proxy else service.port,
        bind=LOOPBACK if service.proxy else service.address,
        served_names=service.served_names or recipe.served_names,
        image=image_reference(image, tag, settings.image_mirrors, catalog),
        image_unpacked_gib=image.size.unpacked_gib,
        entrypoint=image.entrypoint,
        variables=image.variables,
        body=_model_reference(
            models[recipe.body.model], recipe.body.mount, facts=derivation is not None
        ),
        drafter=_model_reference(models[recipe.drafter.model], recipe.drafter.mount)
        if recipe.drafter
        else None,
        arguments=tuple((key, value) for key, value in arguments.items() if value is not None),
        environment=tuple((key, value) for key, value in environment.items() if value is not None),
        shm_gib=recipe.shm_gib,
        memlock=recipe.memlock,
        container=plan_container(
            image,
            service.hardening,
            [one for one in (recipe.exceptions, service.exceptions) if one],
            boot_caches=service.boot_caches,
        ),
        needs=recipe.needs,
        boot_seconds=service.boot_seconds or recipe.boot_seconds,
        first_answer_seconds=service.first_answer_seconds or recipe.first_answer_seconds,
        smoke=service.smoke,
        silenced=tuple(sorted(service.silenced.items())),
        gpus=tuple(map(str, service.gpus or ())),
        origins=origins,
        derived=derivation.facts if derivation else (),
        exclusive=service.exclusive,
        on_request=service.activate == "on-request",
        proxy=ProxyPlan(service.address, service.port, service.port + 2 * PROXY_STEP)
        if service.proxy
        else None,
        rank=ranks.rank_of(host, service, settings),
    )
    return planned.at_rank(planned.rank.number) if planned.rank else planned


def image_reference(
    image: Image, tag: str, mirrors: Mapping[str, str], catalog: Catalog
) -> ImageReference:
    """Where an image is pulled from: its own registry, or the mirror set for that registry."""
    host, _, path = image.repository.partition("/")
    registry = mirrors.get(host, f"https://{host}")
    build = None
    if image.build:
        base = catalog.images[image.build.base]
        build = BuildReference(
            context=mirrors.get(image.build.context, image.build.context),
            directory=image.build.directory,
            base=image_reference(base, image.build.base_tag, mirrors, catalog),
            base_name=f"{base.repository}:{image.build.base_tag}",
        )
    return ImageReference(
        image=image.name,
        name=f"{image.repository}:{tag}",
        registry=registry,
        repository=path,
        pull_name=f"{registry.split('://', 1)[1]}/{path}",
        tag=tag,
        digest=image.tags[tag].digest,
        build=build,
    )


def _model_reference(model: Model, mount: str, *, facts: bool = False) -> ModelReference:
    return ModelReference(model.name, model.repository, model.revision, mount, facts)


def _twice(host: str, services: list[ServicePlan], where: str) -> Iterator[Finding]:
    """Ports and served names that two services of one host both want."""
    ports: dict[int, ServicePlan] = {}
    names: dict[str, str] = {}
    for service in services:
        own = [service.port]
        if service.proxy:
            own = [service.proxy.port, service.port, service.proxy.health_port]
            if own[-1] > 65535:
                yield mistake(
                    f"{where}.{service.name}.port",
                    f"behind a proxy, {own[-1]} is asked for health, which is no port",
                    f"take a port below {65536 - 2 * PROXY_STEP}",
                    host,
                )
        for port in own:
            if port in ports and not _take_turns(service, ports[port]):
                yield mistake(
                    f"{where}.{service.name}.port",
                    f"port {port} is taken by service {ports[port].name!r} of the same host",
                    "give each service a port of its own",
                    host,
                )
            ports[port] = service
        for alias in service.served_names:
            if alias in names:
                yield mistake(
                    f"{where}.{service.name}.served_names",
                    f"{alias!r} is a name of service {names[alias]!r} of the same host",
                    "give each service names of its own",
                    host,
                )
            names[alias] = service.name
    parts = {service.name: service.rank for service in services if service.rank}
    yield from ranks.taken(host, parts, {port: one.name for port, one in ports.items()})


def _woken(host: str, settings: HostSettings, where: str) -> Iterator[Finding]:
    """Services that no request can activate, though they are to be."""
    for name, service in settings.services.items():
        if service.activate is not None and (service.exclusive is None or not service.proxy):
            yield mistake(
                f"{where}.{name}.activate",
                "its proxy has it activated while another one of its exclusive group runs",
                "give it 'exclusive', and leave proxy as it is; or leave this out",
                host,
            )


def _take_turns(one: ServicePlan, other: ServicePlan) -> bool:
    """Whether two services may share a port: the proxy of one that sleeps answers at its own."""
    together = one.exclusive is not None and one.exclusive == other.exclusive
    return together and one.proxy is None and other.proxy is None
