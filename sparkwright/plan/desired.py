"""The desired state of one host: its plan, resolved, rendered and named."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.host.fetch.request import ContentCheck, ExpectedContents
from sparkwright.host.lib.records import dataclass
from sparkwright.host.service import Service
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.resolve import hub, lock, pickles, registry
from sparkwright.resolve.references import ImageReference, hex_digits


@dataclass(frozen=True)
class DesiredModel:
    """A model of a host.

    Attributes:
        directory: the model's directory on the host.
        expected: format and checks of the model's files, from the catalog.
        endpoint: URL of the model's hub.
    """

    directory: str
    resolved: hub.ResolvedModel
    expected: ExpectedContents
    endpoint: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of ``models.present``. The plan has left out all pickles except the files that
        a setting names.
        """
        return {
            "repository": self.resolved.repository, "commit": self.resolved.commit,
            "part": self.resolved.part,
            "files": self.resolved.to_fetch,
            "root": self.directory.removesuffix(f"/{self.resolved.directory}"),
            "endpoint": self.endpoint, "expected": self.expected, "pickles": True,
        }  # fmt: skip

    @property
    def shared_name(self) -> str:
        """Name of the model among hosts that share the model."""
        part = self.resolved.part
        return f"{self.resolved.repository}{part and ':'}{part}@{self.resolved.commit}"


@dataclass(frozen=True)
class DesiredImage:
    """An image of a host: its source, and its name on the host.

    Attributes:
        planned: the reference that the plan names.
        store: directory of the host for the image's parts.
    """

    planned: ImageReference
    resolved: registry.ResolvedImage
    store: str

    @property
    def name(self) -> str:
        """Name of the image on the host, derived from its digest."""
        return self.resolved.local_name(self.planned)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of ``images.present``."""
        return {
            "image": self.name, "digest": self.resolved.digest,
            "registry": self.planned.pulled.registry,
            "repository": self.planned.pulled.repository, "platforms": self.resolved.platforms,
            "title": self.title, "store": self.store,
        }  # fmt: skip

    @property
    def title(self) -> str:
        """Name of the image in messages."""
        return f"{self.planned.name} ({self.name.rpartition(':')[2][:19]})"

    def shared_name(self, architecture: str) -> str:
        """Return the name under which hosts of one architecture share the image."""
        return f"{self.planned.pulled.name} {self.resolved.digest} {architecture}"


@dataclass(frozen=True)
class Desired:
    """The desired state of a host.

    Attributes:
        services: rendered services, in the plan's order.
    """

    plan: HostPlan
    catalog: Catalog
    resolution: lock.Resolution
    services: tuple[Service, ...]

    @cached_property
    def models(self) -> tuple[DesiredModel, ...]:
        """Models of the host, without duplicates."""
        settings = self.plan.settings
        desired_models: dict[str, DesiredModel] = {}
        for model in self.plan.references.models:
            allowed = (*settings.allowed_pickles, *model.code)
            resolved = pickles.fetched(self.resolution.model(model), allowed)
            directory = f"{settings.models_root}/{resolved.directory}"
            expected = self._expected(resolved.repository)
            desired_models[directory] = DesiredModel(
                directory, resolved, expected, settings.hub_endpoint
            )
        return tuple(desired_models.values())

    @cached_property
    def images(self) -> tuple[DesiredImage, ...]:
        """Images of the host, without duplicates."""
        desired_images: dict[str, DesiredImage] = {}
        for planned in self.plan.references.images:
            resolved = self.resolution.image(planned)
            store = f"{self.plan.settings.services_root}/images/{hex_digits(resolved.digest)}"
            image = DesiredImage(planned, resolved, store)
            desired_images[image.name] = image
        return tuple(desired_images.values())

    @property
    def planned_services(self) -> Iterator[tuple[ServicePlan, Service]]:
        """Each service as planned and as rendered."""
        return zip(self.plan.services, self.services, strict=True)

    def _expected(self, repository: str) -> ExpectedContents:
        """Format and checks of a model's files, for the program that fetches them."""
        for model in self.catalog.models.values():
            if model.repository == repository:
                entries = (check.model_dump(exclude={"source"}) for check in model.checks)
                checks = tuple(ContentCheck(**entry) for entry in entries)
                return ExpectedContents(model.format, checks)
        return ExpectedContents()
