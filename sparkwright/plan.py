"""The plan: what each host shall be, decided before the first host is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sparkwright.catalog import ArgumentValue, Catalog, Image, Model, Needs, Recipe
from sparkwright.problems import Problem, UserError, suggest
from sparkwright.settings import HostSettings, ServiceSettings

GIB = 1024**3


@dataclass(frozen=True)
class ImageReference:
    """An image at a tag, where this host pulls it from.

    Attributes:
        registry: ``http(s)://host[:port]`` that is asked for digests.
        repository: path within the registry.
        pull_name: ``host[:port]/path``, without tag: what Docker is given.
    """

    image: str
    registry: str
    repository: str
    pull_name: str
    tag: str


@dataclass(frozen=True)
class ModelReference:
    """A model's repository at a revision, and the path at which the container sees it."""

    name: str
    repository: str
    revision: str
    mount: str


@dataclass(frozen=True)
class ServicePlan:
    """A service with every setting resolved; what the network decides is still open."""

    name: str
    recipe: str
    port: int
    bind: str
    served_names: tuple[str, ...]
    image: ImageReference
    image_unpacked_gib: float
    entrypoint: str
    body: ModelReference
    drafter: ModelReference | None
    arguments: tuple[tuple[str, ArgumentValue], ...]
    environment: tuple[tuple[str, str], ...]
    needs: Needs
    boot_seconds: int
    first_answer_seconds: int

    @property
    def models(self) -> tuple[ModelReference, ...]:
        """Body and drafter."""
        return (self.body, self.drafter) if self.drafter else (self.body,)

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"


@dataclass(frozen=True)
class HostPlan:
    """What one host shall be."""

    host: str
    settings: HostSettings
    services: tuple[ServicePlan, ...]


def plan_host(
    host: str, settings: HostSettings, catalog: Catalog, origin: Callable[[str], str]
) -> HostPlan:
    """Join settings and catalog.

    Args:
        origin: file that a top-level key of the settings comes from, for messages.

    Raises:
        UserError: every problem of this host.
    """
    problems: list[Problem] = []
    services: list[ServicePlan] = []
    where = f"{origin('services')}: services"
    for name, service in sorted(settings.services.items()):
        recipe = catalog.recipes.get(service.recipe)
        if recipe is None:
            problems.append(
                Problem(
                    f"{where}.{name}.recipe",
                    f"no such recipe: {service.recipe!r}",
                    suggest(service.recipe, list(catalog.recipes)),
                    host,
                )
            )
            continue
        image = catalog.images[recipe.image]
        tag = service.image_tag or settings.image_tag or image.newest_tag
        if tag not in image.tags:
            key = (
                f"{where}.{name}.image_tag"
                if service.image_tag
                else f"{origin('image_tag')}: image_tag"
            )
            problems.append(
                Problem(
                    key,
                    f"image {image.name} has no tag {tag!r} in the catalog",
                    f"{suggest(tag, list(image.tags))} (a new tag is a few lines in the catalog)",
                    host,
                )
            )
            continue
        services.append(_plan_service(name, service, recipe, image, tag, settings, catalog.models))
    problems.extend(_twice(host, services, where))
    if problems:
        raise UserError(problems)
    return HostPlan(host, settings, tuple(services))


def _plan_service(
    name: str,
    service: ServiceSettings,
    recipe: Recipe,
    image: Image,
    tag: str,
    settings: HostSettings,
    models: Mapping[str, Model],
) -> ServicePlan:
    arguments: dict[str, ArgumentValue | None] = {**recipe.arguments, **service.arguments}
    environment: dict[str, str | None] = {**recipe.environment, **service.environment}
    return ServicePlan(
        name=name,
        recipe=recipe.name,
        port=service.port,
        bind=service.bind,
        served_names=service.served_names or recipe.served_names,
        image=image_reference(image, tag, settings.image_mirrors),
        image_unpacked_gib=image.size.unpacked_gib,
        entrypoint=image.entrypoint,
        body=_model_reference(models[recipe.body.model], recipe.body.mount),
        drafter=_model_reference(models[recipe.drafter.model], recipe.drafter.mount)
        if recipe.drafter
        else None,
        arguments=tuple((key, value) for key, value in arguments.items() if value is not None),
        environment=tuple((key, value) for key, value in environment.items() if value is not None),
        needs=recipe.needs,
        boot_seconds=service.boot_seconds or recipe.boot_seconds,
        first_answer_seconds=recipe.first_answer_seconds,
    )


def image_reference(image: Image, tag: str, mirrors: Mapping[str, str]) -> ImageReference:
    """Where an image is pulled from: its own registry, or the mirror set for that registry."""
    host, _, path = image.repository.partition("/")
    registry = mirrors.get(host, f"https://{host}")
    return ImageReference(
        image=image.name,
        registry=registry,
        repository=path,
        pull_name=f"{registry.split('://', 1)[1]}/{path}",
        tag=tag,
    )


def _model_reference(model: Model, mount: str) -> ModelReference:
    return ModelReference(model.name, model.repository, model.revision, mount)


def _twice(host: str, services: list[ServicePlan], where: str) -> Iterator[Problem]:
    """Ports and served names that two services of one host both want."""
    ports: dict[int, str] = {}
    names: dict[str, str] = {}
    for service in services:
        if service.port in ports:
            yield Problem(
                f"{where}.{service.name}.port",
                f"port {service.port} is taken by service {ports[service.port]!r} of the same host",
                "give each service a port of its own",
                host,
            )
        ports[service.port] = service.name
        for alias in service.served_names:
            if alias in names:
                yield Problem(
                    f"{where}.{service.name}.served_names",
                    f"{alias!r} is a name of service {names[alias]!r} of the same host",
                    "give each service names of its own",
                    host,
                )
            names[alias] = service.name
