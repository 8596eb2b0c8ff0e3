"""What a host is to be: its plan with everything resolved, and what is to be fetched for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.release import Release
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.references import ImageReference
from sparkwright.resolve.resolution import Resolution


@dataclass(frozen=True)
class Pull:
    """An image of a host: where it comes from, and what it is called there.

    Attributes:
        reference: of the registry's image; for a built image, of its base.
        digest: of that.
        store: directory of the host for the image's parts.
    """

    release: Release
    reference: ImageReference
    digest: str
    store: str


@dataclass(frozen=True)
class Desired:
    """A host's desired state."""

    plan: HostPlan
    catalog: Catalog
    resolution: Resolution
    releases: tuple[Release, ...]

    def models(self) -> dict[str, ResolvedModel]:
        """Every model of the host, by the directory it goes to."""
        settings = self.plan.settings
        found = {}
        for service in self.plan.services:
            for model in service.models:
                resolved = self.resolution.model(settings.hub_endpoint, model)
                found[f"{settings.models_root}/{resolved.directory}"] = resolved
        return found

    def pulls(self) -> list[Pull]:
        """Every image of the host, each once."""
        found = {}
        for release in self.releases:
            planned = release.service.image
            digest = self.resolution.image(planned).digest
            found[release.image] = Pull(
                release,
                planned.build.base if planned.build else planned,
                digest,
                f"{self.plan.settings.services_root}/images/{digest.partition(':')[2]}",
            )
        return list(found.values())

    def expected(self, repository: str) -> dict[str, Any]:
        """What a model's files must be, for the program that fetches them."""
        for model in self.catalog.models.values():
            if model.repository == repository:
                return {
                    "format": model.format,
                    "checks": [
                        check.model_dump(mode="json", exclude_none=True, exclude={"source"})
                        for check in model.checks
                    ],
                }
        return {"format": None, "checks": []}
