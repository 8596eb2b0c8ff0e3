"""The plan: the desired state of each host, decided before the first host is touched."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from sparkwright.catalog import ArgumentValue, Catalog, Image, Model, Recipe, Variables
from sparkwright.catalog.entries import KvOffload, TagChange
from sparkwright.config.settings import LOOPBACK, HostSettings, ServiceSettings
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.derivation import Derivation, DerivedFact, Gpu
from sparkwright.engines.engine import Engine, Rank, Sleep
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Fault, Problems, mistake, mistakes, suggest
from sparkwright.host.lib.exclusive import NOBODY
from sparkwright.host.lib.records import dataclass, field, replace
from sparkwright.plan import ranks, schedule
from sparkwright.plan.container import ContainerPlan, plan_container
from sparkwright.plan.files import PlannedFile
from sparkwright.plan.patches import steps_of
from sparkwright.plan.tags import MESSAGES, chosen_tag, no_such_tag
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.references import (
    BuildReference,
    ImageReference,
    ModelReference,
    References,
)
from sparkwright.tls.names import Certificate, Tls


@dataclass(frozen=True)
class ServicePlan:
    """A service with every setting resolved; properties of its images and models may still be open.

    Attributes:
        settings: settings as written; values that need no decision are read here.
        engine: name of the engine in the service's image.
        version: version of the engine; None if no card gives the version.
        origins: ``argument.<name>``, ``environment.<NAME>`` etc. -> origin of the value.
        served_names: all names for clients, adapters' names last.
        adapters: adapters by the names that clients use.
        task: task of the body, from the model's catalog entry.
        file, projector: paths of the body's GGUF files in the model's repository; None for other
            formats.
        derived: values read from the model's own files, if no recipe sets them.
        rank: the host's rank in a cluster; None for a service of one host.
        files: files that the container reads besides the image and the weights; empty before they
            are read.
    """

    name: str
    settings: ServiceSettings
    recipe: Recipe
    engine: str
    version: str | None
    served_names: tuple[str, ...]
    image: ImageReference
    entrypoint: str
    variables: Variables | None
    body: ModelReference
    task: str
    drafter: ModelReference | None
    adapters: Mapping[str, ModelReference]
    kv_offload: KvOffload | None
    file: str | None
    projector: str | None
    arguments: tuple[tuple[str, ArgumentValue], ...]
    environment: tuple[tuple[str, str], ...]
    container: ContainerPlan
    boot_seconds: int
    first_answer_seconds: int
    origins: Mapping[str, str]
    derived: tuple[DerivedFact, ...]
    rank: Rank | None
    files: tuple[PlannedFile, ...] = ()

    @property
    def follower(self) -> bool:
        """Return whether another host answers for the service."""
        return self.rank is not None and not self.rank.head

    @property
    def sleep(self) -> Sleep | None:
        """Sleep mode of the service's idle engine; None if the unit stops instead."""
        idle = self.settings.idle
        return engine(self.engine).sleep if idle and idle.do == "sleep" else None

    @property
    def proxy(self) -> bool:
        """Return whether the service is behind a proxy; then clients connect to the proxy."""
        return self.settings.proxy and not self.follower

    @property
    def port(self) -> int:
        """The port that clients use."""
        return self.settings.port

    @property
    def bind(self) -> str:
        """Return the address that clients connect to; ``0.0.0.0`` means every address of the
        host.
        """
        return LOOPBACK if self.follower else self.settings.address

    @property
    def socket(self) -> str | None:
        """The Unix socket that the service's engine listens on, behind a proxy; None for bind and
        port.
        """
        return f"{SOCKETS}/{self.name}/http.sock" if self.proxy else None

    @property
    def network(self) -> str:
        """The network of the service's container: ``none`` (loopback only), a separate ``bridge``,
        or the network of the ``host``.
        """
        if self.rank is not None:
            return "host"
        return "none" if self.socket and not self.outgoing else "bridge"

    @property
    def bridge(self) -> str | None:
        """The interface of the container's network: 15 characters, the kernel's limit."""
        if self.network != "bridge":
            return None
        return f"sw-{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"

    @property
    def outgoing(self) -> bool:
        """Return whether the service's container may open connections."""
        return self.settings.outgoing or bool(self.settings.media_domains)

    @property
    def models(self) -> tuple[ModelReference, ...]:
        """Models of the service: body, drafter and adapters."""
        return (self.body, *filter(None, (self.drafter,)), *self.adapters.values())

    @property
    def offload_directory(self) -> str | None:
        """Return the host's directory for the service's KV caches, open to root only; None without
        a directory.
        """
        disk = self.kv_offload and self.kv_offload.disk
        return f"{disk}/sparkwright-kv/{self.name}" if disk else None

    @property
    def offload_ram_gib(self) -> float:
        """Return the GiB of RAM for the service's offloaded KV cache; for a cache on a disk, the
        buffer's size.
        """
        return (
            STAGED_GIB if self.offload_directory else self.kv_offload.gib if self.kv_offload else 0
        )

    @property
    def gpus(self) -> tuple[str, ...]:
        """Return the indexes and UUIDs of the container's GPUs; empty for all GPUs of the host."""
        return tuple(map(str, self.settings.gpus or ()))

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"


@dataclass(frozen=True)
class HostPlan:
    """Plan of a host.

    Attributes:
        locked: whether the host's lock file exists.
        gpu: the host's GPU, from its setting or its group; None if unknown.
        certificate: the user's own certificate, if any.
        python_files: model's name in the catalog -> Python files of its commit; None while unknown.
        resolved: models by the key of their reference, as far as they are known.
    """

    host: str
    settings: HostSettings
    services: tuple[ServicePlan, ...]
    locked: bool = False
    python_files: Mapping[str, tuple[str, ...]] | None = None
    resolved: Mapping[str, ResolvedModel] = field(default_factory=dict)
    gpu: Gpu | None = None
    certificate: Certificate | None = None

    @property
    def tls(self) -> Tls:
        """TLS of the host's proxies, and of its connections to other hosts."""
        return "own" if self.settings.tls == "own" else self.certificate

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Return the services of each exclusive group as written; the first is the default.
        ``NOBODY`` is the last member if a service stops when idle.
        """
        result: dict[str, tuple[str, ...]] = {}
        for name, service in self.settings.services.items():
            if service.exclusive:
                result[service.exclusive] = (*result.get(service.exclusive, ()), name)
        idle = {service.exclusive for service in self.settings.services.values() if service.idle}
        return {group: (*its, NOBODY) if group in idle else its for group, its in result.items()}

    def counted(self, needs: Mapping[str, float]) -> tuple[str, ...]:
        """Services that need resources at the same time: the largest of each exclusive group, and
        all others.

        Args:
            needs: need of each service.
        """
        most: dict[str, str] = {}
        for name, need in needs.items():
            group = self.settings.services[name].exclusive or f" {name}"
            if group not in most or need > needs[most[group]]:
                most[group] = name
        return tuple(most.values())

    def largest(self, needs: Mapping[str, float]) -> float:
        """Return the sum of the services' needs; only the largest need of each exclusive group
        counts.
        """
        return sum(needs[name] for name in self.counted(needs))

    @property
    def page_images(self) -> tuple[ImageReference, ...]:
        """The image of Open WebUI, if the address includes Open WebUI."""
        page = self.settings.address and self.settings.address.open_webui
        if not page:
            return ()
        name, repository = "open-webui", "ghcr.io/open-webui/open-webui"
        digest = OPEN_WEBUI_DIGESTS.get(page.tag)
        return (pulled_reference(name, repository, page.tag, self.settings, digest),)

    @property
    def references(self) -> References:
        """Images and models that the host needs, the hub, and the registries' credentials."""
        return References(
            images=(*(service.image for service in self.services), *self.page_images),
            models=tuple(model for service in self.services for model in service.models),
            hub_endpoint=self.settings.hub_endpoint,
            registry_auth=self.settings.registry_auth_source,
            private=self.settings.private_servers,
            files={
                each.file.name: each.pin
                for service in self.services for each in service.files if each.pin
            },
        )  # fmt: skip


#: Tag of ghcr.io/open-webui/open-webui -> digest of its index for arm64 and amd64.
OPEN_WEBUI_DIGESTS = {
    "v0.11.3": "sha256:751b617714b91e4cfd0186a509c72480c858e012976103b09a30dad053c36175"
}
#: Directories of the engines' sockets, which only root and HAProxy's user enter.
SOCKETS = "/run/sparkwright-engines"
#: GiB of RAM that buffer a KV cache on a disk: cpu_bytes_to_use of vLLM's engine.yaml.
STAGED_GIB = 4
#: sshd's port on the host, even if the controller reaches sshd at another port.
_SSH = 22
#: Arguments, environment, and the origin of each value.
_Layers = tuple[dict[str, ArgumentValue | None], dict[str, str | None], dict[str, str]]


def plan_host(
    host: str,
    settings: HostSettings,
    catalog: Catalog,
    origin: Callable[[str], str],
    derivations: Mapping[str, Derivation] = MappingProxyType({}),
) -> HostPlan:
    """Join the settings and the catalog.

    Args:
        derivations: service -> origins of the values in its derived recipe.
        origin: file that a top-level key of the settings comes from, for messages.

    Raises:
        UserError: the host has no valid plan; the text has every problem.
    """
    problems = Problems()
    services: list[ServicePlan] = []
    where = f"{origin('services')}: services"
    for name, service in sorted(settings.services.items()):
        own = f"{where}.{name}"
        recipe = catalog.recipes.get(service.recipe or "")
        if recipe is None:
            named, near = service.recipe, suggest(service.recipe or "", list(catalog.recipes))
            where_of = f"{own}.recipe"
            problems.append(MESSAGES.mistake("no-recipe", where_of, host, name=named, near=near))
            continue
        image = catalog.images[recipe.image]
        if image.engine not in ENGINES:
            named, near = image.engine, suggest(image.engine, [*ENGINES])
            where_of = f"image {image.name}: engine"
            problems.append(MESSAGES.mistake("no-engine", where_of, host, name=named, near=near))
            continue
        tag, key = chosen_tag(service, settings, recipe, image, f"{own}.image_tag", origin)
        if tag not in image.tags or tag not in (recipe.tags or image.tags):
            problems.append(no_such_tag(key, tag, recipe, image, catalog, host))
            continue
        derivation = derivations.get(name)
        layers = _layered(service, recipe, image, tag, own, derivation)
        program = engine(image.engine)
        with problems.collected():
            service_plan = _planned(host, name, settings, catalog, recipe, tag, layers, derivation)
            problems += _misuses(host, service_plan, program)
            problems += mistakes(where, _sleepless(service_plan, program), host)
            services.append(with_additions(service_plan))
        faults = ranks.problems(host, service, recipe, image, settings, program)
        problems += mistakes(own, faults, host)
    problems += mistakes(where, _woken(settings), host)
    faults = schedule.problems(settings)
    problems += mistakes(f"{origin('schedule')}: schedule", faults, host)
    problems.stop()
    return HostPlan(host, settings, tuple(services))


def with_additions(
    service: ServicePlan, resolved: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ServicePlan:
    """Return the service with its engine's arguments for adapters and offload; written arguments
    take precedence.

    Args:
        resolved: models by the key of their reference, as far as they are known.
    """
    models = [resolved[item.key] for item in service.adapters.values() if item.key in resolved]
    rank = max((model.lora.rank for model in models if model.lora), default=0)
    paths = {name: item.mount for name, item in service.adapters.items()}
    add, version = engine(service.engine).additions, service.version
    added = {**add(version, paths, rank, service.kv_offload)}
    environment = dict(service.environment)
    origins = dict(service.origins)
    if service.sleep:
        added |= service.sleep.arguments
        environment |= service.sleep.environment
        names = [f"argument.{name}" for name in service.sleep.arguments]
        names += [f"environment.{name}" for name in service.sleep.environment]
        origins |= dict.fromkeys(names, service.origins["idle"])
    origin = service.origins["adapters" if service.adapters else "kv_offload"]
    origins = {**{f"argument.{name}": origin for name in added}, **origins}
    return replace(
        service,
        arguments=tuple({**added, **dict(service.arguments)}.items()),
        environment=tuple(environment.items()),
        origins=origins,
    )


def taken(
    plan: HostPlan, origin: Callable[[str], str], ssh_port: object = None
) -> Iterator[Finding]:
    """Conflicts of ports and served names between services of a host, or with its other parts.

    Args:
        ssh_port: port of the controller's connection in the user's settings.
    """
    for key, problem, remedy in _twice(plan.services, plan.settings, ssh_port):
        where = f"{origin(key.partition('.')[0])}: {key}"
        yield mistake(where, problem, remedy, plan.host)


def _misuses(host: str, service: ServicePlan, engine: Engine) -> Iterator[Finding]:
    """Arguments and variables that repeat a setting."""
    result = [("argument", fault) for fault in engine.parser.misplaced(dict(service.arguments))]
    if service.variables:
        refused = engine.refused(service.variables, dict(service.environment))
        result += [("environment", fault) for fault in refused]
    for kind, (key, problem, remedy) in result:
        origin = service.origins[f"{kind}.{key}"]
        group = "arguments" if kind == "argument" else kind
        where = f"{origin}{'.' if ': ' in origin else ': '}{group}"
        yield mistake(f"{where}.{key}", problem, remedy, host)


def _sleepless(service: ServicePlan, engine: Engine) -> Iterator[Fault]:
    """Reasons why a service can't sleep, although its settings require it."""
    settings = service.settings
    if settings.idle is None or settings.idle.do != "sleep":
        return
    if engine.sleep is None:
        why = f"{engine.title} has no sleep mode"
    elif settings.exclusive != f"idle.{service.name}":
        why = f"another service of group {settings.exclusive!r} may need all memory"
    else:
        return
    yield MESSAGES.fault("not-slept", f"{service.name}.idle.do", why=why)


def _layered(
    service: ServiceSettings,
    recipe: Recipe,
    image: Image,
    tag: str,
    own: str,
    derivation: Derivation | None,
) -> _Layers:
    """Merged arguments and environment of the recipe, tag and service, and their origins."""
    arguments: dict[str, ArgumentValue | None] = {}
    environment: dict[str, str | None] = {}
    origins: dict[str, str] = {}
    source, program = f"recipe {recipe.name}", engine(image.engine)
    layers: list[tuple[Recipe | TagChange | ServiceSettings, str]] = [(recipe, source)]
    layers += [
        (change, f"{source}, tag {tag}") for name, change in recipe.by_tag.items() if name == tag
    ]
    layers.append((service, own))
    for layer, origin in layers:
        arguments.update(layer.arguments)
        environment.update(layer.environment)
        derived = derivation.arguments if derivation and layer is recipe else {}
        origins.update({f"argument.{key}": derived.get(key, origin) for key in layer.arguments})
        origins.update({f"environment.{key}": origin for key in layer.environment})
        if image.variables:
            program.read_back(image.variables, arguments, environment, origins)
    for key in ServiceSettings.model_fields:
        origins[key] = own if key in service.model_fields_set else source
    spread = ranks.sizes(recipe, service, program)
    arguments.update(spread)
    origins.update({f"argument.{key}": f"{source}, ranks" for key in spread})
    return arguments, environment, origins


def _planned(
    host: str,
    name: str,
    settings: HostSettings,
    catalog: Catalog,
    recipe: Recipe,
    tag: str,
    layers: _Layers,
    derivation: Derivation | None,
) -> ServicePlan:
    service, drafter, models = settings.services[name], recipe.drafter, catalog.models
    image, (arguments, environment, origins) = catalog.images[recipe.image], layers
    body = _model_reference(models[recipe.body.model], recipe.body.mount, derivation)
    exceptions = [item for item in (recipe.exceptions, service.exceptions) if item]
    adapters = {item.name: item for item in (*recipe.adapters, *service.adapters)}
    return ServicePlan(
        name=name,
        settings=service,
        recipe=recipe,
        engine=image.engine,
        version=image.tags[tag].version,
        served_names=(*(service.served_names or recipe.served_names), *adapters),
        image=replace(
            image_reference(image, tag, settings, catalog),
            steps=steps_of(recipe, image, catalog.writer(recipe.name, "patches"), host),
        ),
        entrypoint=image.entrypoint,
        variables=image.variables,
        body=body,
        task=models[recipe.body.model].task,
        file=models[recipe.body.model].file,
        projector=models[recipe.body.model].projector,
        drafter=_model_reference(models[drafter.model], drafter.mount) if drafter else None,
        adapters={
            # The blank makes the name unique: no entry of a catalog has a blank in its name.
            name: ModelReference(f"adapter {name}", item.model, item.revision, f"/adapters/{name}")
            for name, item in adapters.items()
        },
        kv_offload=(service if "kv_offload" in service.model_fields_set else recipe).kv_offload,
        arguments=tuple((key, value) for key, value in arguments.items() if value is not None),
        environment=tuple((key, text) for key, text in environment.items() if text is not None),
        container=plan_container(image, service, exceptions),
        boot_seconds=service.boot_seconds or recipe.boot_seconds,
        first_answer_seconds=service.first_answer_seconds or recipe.first_answer_seconds,
        origins=origins,
        derived=derivation.facts if derivation else (),
        rank=ranks.rank_of(host, service, settings),
    )


def image_reference(
    image: Image, tag: str, settings: HostSettings, catalog: Catalog
) -> ImageReference:
    """Return the address from which an image is pulled: its own registry, or the mirror set for
    that registry.
    """
    mirrors, build = settings.image_mirrors, None
    if image.build:
        base = catalog.images[image.build.base]
        build = BuildReference(
            context=mirrors.get(image.build.context, image.build.context),
            directory=image.build.directory,
            base=image_reference(base, image.build.base_tag, settings, catalog),
            base_name=f"{base.repository}:{image.build.base_tag}",
        )
    reference = pulled_reference(image.name, image.repository, tag, settings)
    return replace(reference, digest=image.tags[tag].digest, build=build)


def pulled_reference(
    name: str, repository: str, tag: str, settings: HostSettings, digest: str | None = None
) -> ImageReference:
    """Registry from which an image is pulled, and the required key of its signature."""
    host, _, path = repository.partition("/")
    registry, keys = settings.image_mirrors.get(host, f"https://{host}"), settings.image_keys
    return ImageReference(
        image=name,
        name=f"{repository}:{tag}",
        registry=registry,
        repository=path,
        pull_name=f"{registry.split('://', 1)[1]}/{path}",
        tag=tag,
        digest=digest,
        key=next((keys[name] for name in keys if fnmatchcase(repository, name)), None),
    )


def _model_reference(
    model: Model, mount: str, derivation: Derivation | None = None
) -> ModelReference:
    code = tuple(f"{model.repository}/{path}" for path in model.code)
    choice = (derivation and derivation.choice) or model.choice
    return ModelReference(
        model.name, model.repository, model.revision, mount, bool(derivation), code, choice
    )


def _listeners(
    services: Sequence[ServicePlan], settings: HostSettings
) -> Iterator[tuple[str, int, str, str]]:
    """Return every port in use on the host: its key, its purpose, and its owner."""
    for service in services:
        key, user = f"services.{service.name}.port", f"service {service.name!r}"
        yield key, service.port, "", user
    for service in services:
        if rank := service.rank:
            for port in (rank.port, rank.port + 1):  # the head's rank program has the second port
                user = f"the ranks of {service.name!r}"
                yield f"clusters.{rank.cluster}.port", port, f", of {user},", user
    if settings.address:
        yield "address.port", settings.address.port, "", "the address of all models"
        if page := settings.address.open_webui:
            yield "address.open_webui.port", page.port, "", "Open WebUI"


def _twice(
    services: Sequence[ServicePlan], settings: HostSettings, ssh_port: object
) -> Iterator[Fault]:
    users = {_SSH: "SSH", **({ssh_port: "SSH (ssh_port)"} if isinstance(ssh_port, int) else {})}
    peers = "peer sharing (peer_port)"
    if settings.peer_sharing and (other := users.setdefault(settings.peer_port, peers)) != peers:
        port = settings.peer_port
        yield MESSAGES.fault("port-twice", "peer_port", port=port, role="", other=other)
    bare = {
        f"service {item.name!r}": item.settings.exclusive for item in services if not item.proxy
    }
    for key, port, role, user in _listeners(services, settings):
        other = users.setdefault(port, user)
        if port > 65535:
            yield MESSAGES.fault("no-port", key, port=port, role=role)
        # Only one service of an exclusive group runs at a time; a sleeping service's proxy keeps
        # its port.
        elif other != user and not (bare.get(other) and bare.get(other) == bare.get(user)):
            yield MESSAGES.fault("port-twice", key, port=port, role=role, other=other)
    names: dict[str, str] = {}
    for service in services:
        for alias in service.served_names:
            if alias in names:
                key = f"services.{service.name}.served_names"
                fault = "name-repeated" if names[alias] == service.name else "name-twice"
                yield MESSAGES.fault(fault, key, alias=alias, other=names[alias])
            names[alias] = service.name


def _woken(settings: HostSettings) -> Iterator[Fault]:
    """Reasons why no request can activate a service that is ``on-request``."""
    for name, service in settings.services.items():
        if service.activate is not None and (service.exclusive is None or not service.proxy):
            yield MESSAGES.fault(
                "not-activated", f"{name}.{'idle' if service.idle else 'activate'}"
            )
        elif service.idle is not None and service.activate is None:
            yield MESSAGES.fault("not-woken", f"{name}.idle", group=service.exclusive)
