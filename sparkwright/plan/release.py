"""Releases: the rendered state of a service on a host, named by a hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sparkwright.catalog.gpus import GPUS
from sparkwright.config.templates import template
from sparkwright.plan.command import container_environment, serve_command
from sparkwright.plan.container import (
    BOOT_CACHES_MOUNT,
    SECRETS_MOUNT,
    SHM_GIB,
    container_entrypoint,
)
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.resolve.resolution import Resolution


@dataclass(frozen=True)
class Release:
    """One rendered state of a service on a host.

    Attributes:
        id: 12 hex digits over everything that is rendered, the image's digest and the models'
            commits with it.
        home: the service's directory on the host.
        compose: text of ``releases/<id>/compose.yaml``.
        unit: text of the systemd unit.
        image: ``host/path:sha256-...``, the name on the host, which is made of the digest;
            for a built image of its commit and its base's digest.
        models: repository -> commit.
    """

    service: ServicePlan
    id: str
    home: str
    compose: str
    unit: str
    image: str
    models: Mapping[str, str]

    @property
    def directory(self) -> str:
        """Where the release's files lie on the host."""
        return f"{self.home}/releases/{self.id}"

    @property
    def secrets(self) -> str:
        """The 0600 file with the API key, beside the releases because it outlives them."""
        return f"{self.home}/secrets.env"

    @property
    def unit_path(self) -> str:
        """Where the unit lies on the host."""
        return f"/etc/systemd/system/{self.service.unit}"


def render_release(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> Release:
    """Render a service of a host. The same plan and resolution give the same release."""
    settings = plan.settings
    home = f"{settings.services_root}/services/{service.name}"
    image = resolution.image(service.image).local_name(service.image)
    models = {
        model.repository: resolution.model(settings.hub_endpoint, model) for model in service.models
    }
    context = {
        "service": service,
        "image": image,
        "home": home,
        "container": service.container,
        "boot_caches": BOOT_CACHES_MOUNT,
        "entrypoint": container_entrypoint(
            service.entrypoint, variables=service.variables is not None
        ),
        "shm_gib": service.shm_gib or (SHM_GIB if service.container.strict else None),
        "drop_caches": settings.drop_caches and GPUS["gb10"] in service.needs.compute_caps,
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        "command": serve_command(service),
        "environment": container_environment(service),
        "mounts": [
            (f"{settings.models_root}/{models[model.repository].directory}", model.mount)
            for model in service.models
        ]
        + [(f"{home}/secrets.env", SECRETS_MOUNT)],
    }
    unit = template("serving/unit.service.j2").render(context)
    # The release's name is in the compose file's label, so it is made from the file without it.
    nameless = template("serving/compose.yaml.j2").render(context, release="")
    release_id = hashlib.sha256(f"{nameless}\0{unit}".encode()).hexdigest()[:12]
    return Release(
        service=service,
        id=release_id,
        home=home,
        compose=template("serving/compose.yaml.j2").render(context, release=release_id),
        unit=unit,
        image=image,
        models={repository: model.commit for repository, model in models.items()},
    )
