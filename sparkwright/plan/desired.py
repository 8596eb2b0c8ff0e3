"""The desired state of one host: its plan with everything resolved, rendered and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.host.fetch.request import ContentCheck, ExpectedContents
from sparkwright.host.service import Service
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.pickles import fetched
from sparkwright.resolve.references import ImageReference
from sparkwright.resolve.registry import ARCHITECTURES, PlatformImage
from sparkwright.resolve.resolution import Resolution


@dataclass(frozen=True)
class DesiredModel:
    """A model of a host.

    Attributes:
        directory: where it goes on the host.
        expected: what its files must be: format and checks of the catalog.
        endpoint: the hub that has it.
    """

    directory: str
    resolved: ResolvedModel
    expected: ExpectedContents
    endpoint: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of ``models.present``. The plan has left out all pickles but those that a
        setting names."""
        return {
            "repository": self.resolved.repository, "commit": self.resolved.commit,
            "files": self.resolved.files,
            "root": self.directory.removesuffix(f"/{self.resolved.directory}"),
            "endpoint": self.endpoint, "expected": self.expected, "pickles": True,
        }  # fmt: skip

    @property
    def shared_name(self) -> str:
        """What it is called among hosts that take it from each other."""
        return f"{self.resolved.repository}@{self.resolved.commit}"


@dataclass(frozen=True)
class DesiredImage:
    """An image of a host: where it comes from, and what it is called there.

    Attributes:
        name: its name on the host, made of its digest.
        planned: the reference that the plan names.
        reference: of the registry's image; for a built image, of its base.
        digest: of that.
        store: directory of the host for the image's parts.
        commit, context: of a built image: commit and sha256 of the folder that it is built from.
    """

    name: str
    planned: ImageReference
    reference: ImageReference
    digest: str
    store: str
    platforms: dict[str, PlatformImage]
    commit: str | None
    context: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of ``images.present``."""
        return {
            "image": self.name, "digest": self.digest, "registry": self.reference.registry,
            "repository": self.reference.repository, "platforms": self.platforms,
            "title": self.title, "store": self.store,
        }  # fmt: skip

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"{self.planned.name} ({self.name.rpartition(':')[2][:19]})"

    @property
    def built(self) -> bool:
        """Whether it is built on the host, over an image that is pulled."""
        return self.reference is not self.planned

    def shared_name(self, architecture: str) -> str:
        """What it is called among hosts of one architecture that take it from each other."""
        return f"{self.reference.name} {self.digest} {architecture}"

    def platform(self, architecture: str) -> PlatformImage:
        """Its files for a host's architecture (as ``uname -m`` has it).

        Raises:
            KeyError: when it has none for it; preflight refuses such hosts.
        """
        return self.platforms[ARCHITECTURES.get(architecture, architecture)]


@dataclass(frozen=True)
class Desired:
    """The desired state of a host.

    Attributes:
        services: rendered, in the plan's order.
    """

    plan: HostPlan
    catalog: Catalog
    resolution: Resolution
    services: tuple[Service, ...]

    @cached_property
    def models(self) -> tuple[DesiredModel, ...]:
        """Every model of the host, each once."""
        settings = self.plan.settings
        found: dict[str, DesiredModel] = {}
        for service in self.plan.services:
            for model in service.models:
                every = self.resolution.model(settings.hub_endpoint, model)
                resolved = fetched(every, settings.allowed_pickles)
                directory = f"{settings.models_root}/{resolved.directory}"
                expected = self._expected(resolved.repository)
                found[directory] = DesiredModel(
                    directory, resolved, expected, settings.hub_endpoint
                )
        return tuple(found.values())

    @cached_property
    def images(self) -> tuple[DesiredImage, ...]:
        """Every image of the host, each once."""
        found = {}
        for service in self.plan.services:
            planned = service.image
            resolved = self.resolution.image(planned)
            name = resolved.local_name(planned)
            found[name] = DesiredImage(
                name=name,
                planned=planned,
                reference=planned.build.base if planned.build else planned,
                digest=resolved.digest,
                store=f"{self.plan.settings.services_root}/images/"
                f"{resolved.digest.partition(':')[2]}",
                platforms=dict(resolved.platforms),
                commit=resolved.commit,
                context=resolved.context,
            )
        return tuple(found.values())

    @property
    def planned_services(self) -> Iterator[tuple[ServicePlan, Service]]:
        """Each service as it was decided, and as it was rendered."""
        return zip(self.plan.services, self.services, strict=True)

    def _expected(self, repository: str) -> ExpectedContents:
        """What a model's files must be, for the program that fetches them."""
        for model in self.catalog.models.values():
            if model.repository == repository:
                checks = (check.model_dump(exclude={"source"}) for check in model.checks)
                return ExpectedContents(model.format, tuple(ContentCheck(**one) for one in checks))
        return ExpectedContents()
