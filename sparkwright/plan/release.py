"""Releases: the rendered state of a service on a host, named by a hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkwright.catalog.gpus import GPUS
from sparkwright.config.templates import template
from sparkwright.engines import engine
from sparkwright.engines.engine import Command, Launch
from sparkwright.plan.container import (
    BOOT_CACHES_MOUNT,
    SECRETS_MOUNT,
    SHM_GIB,
    container_entrypoint,
)
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.ranks import rank_environment
from sparkwright.resolve.hub import ResolvedModel
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


@dataclass(frozen=True)
class Contents:
    """What a service's container is started with, whatever writes it down.

    Attributes:
        entrypoint, command: its words; with the API key's file at ``SECRETS_MOUNT``.
        weights: directory on the host -> where the container reads it.
        shm_gib: size of /dev/shm; None for the host's own.
        drop_caches: whether the host's page cache is dropped before a start.
    """

    entrypoint: list[str]
    command: list[str]
    environment: dict[str, str]
    models: dict[str, ResolvedModel]
    weights: list[tuple[str, str]]
    shm_gib: float | None
    drop_caches: bool


def contents(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> Contents:
    """What the container of a service is started with."""
    settings = plan.settings
    command = container_command(service)
    program = engine(service.engine).program if service.variables else None
    models = {
        model.repository: resolution.model(settings.hub_endpoint, model) for model in service.models
    }
    return Contents(
        # A follower answers nobody: it gets no key.
        entrypoint=[service.entrypoint]
        if service.follower
        else container_entrypoint(service.entrypoint, program=program),
        command=command.words,
        environment=command.environment,
        models=models,
        weights=[
            (f"{settings.models_root}/{models[model.repository].directory}", model.mount)
            for model in service.models
        ],
        shm_gib=service.shm_gib or (SHM_GIB if service.container.strict else None),
        drop_caches=settings.drop_caches and GPUS["gb10"] in service.needs.compute_caps,
    )


def container_command(service: ServicePlan) -> Command:
    """Command line and environment of a service's container, as its engine has them."""
    own, container, rank = engine(service.engine), service.container, service.rank
    fabric = rank_environment(rank, own) if rank and rank.shape is None else {}
    return own.command(
        Launch(
            model=service.body.mount,
            served_names=service.served_names,
            # In a network of its own, Docker publishes the port at bind.
            host="0.0.0.0" if container.strict else service.bind,
            port=service.port,
            arguments=dict(service.arguments),
            environment={**fabric, **dict(service.environment)},
            variables=service.variables,
            rank=rank,
            caches=BOOT_CACHES_MOUNT if container.boot_caches else None,
        )
    )


def service_home(plan: HostPlan, service: ServicePlan) -> str:
    """A service's directory on its host."""
    return f"{plan.settings.services_root}/services/{service.name}"


def render_release(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> Release:
    """Render a service of a host. The same plan and resolution give the same release.

    All ranks of a cluster's service have one release, and each its own part of it: the id is made
    of every rank's texts.
    """
    ranks = range(len(service.rank.hosts)) if service.rank else ()
    parts = [service.at_rank(number) for number in ranks] or [service]
    inside = contents(plan, service, resolution)
    contexts = [_context(plan, one, resolution) for one in parts]
    own = contexts[service.rank.number if service.rank else 0]
    unit, compose = template("serving/unit.service.j2"), template("serving/compose.yaml.j2")
    # The release's name is in the compose file's label, so it is made from the files without it.
    nameless = [f"{compose.render(one, release='')}\0{unit.render(one)}" for one in contexts]
    release_id = hashlib.sha256("\0".join(nameless).encode()).hexdigest()[:12]
    return Release(
        service=service,
        id=release_id,
        home=service_home(plan, service),
        compose=compose.render(own, release=release_id),
        unit=unit.render(own),
        image=str(own["image"]),
        models={repository: model.commit for repository, model in inside.models.items()},
    )


def _context(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> dict[str, object]:
    """What the templates are given."""
    settings, rank, home = plan.settings, service.rank, service_home(plan, service)
    inside = contents(plan, service, resolution)
    container = service.container
    rdma = rank is not None and rank.shape is not None
    if rdma:
        # Memory that stays where it is.
        container = replace(container, cap_add=tuple(sorted({*container.cap_add, "IPC_LOCK"})))
    secrets = [] if service.follower else [(f"{home}/secrets.env", SECRETS_MOUNT)]
    return {
        "service": service,
        "rank": rank,
        "image": resolution.image(service.image).local_name(service.image),
        "home": home,
        "container": container,
        "memlock": service.memlock or rdma,
        "boot_caches": BOOT_CACHES_MOUNT,
        "entrypoint": inside.entrypoint,
        "shm_gib": inside.shm_gib,
        "drop_caches": inside.drop_caches,
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        "command": inside.command,
        "environment": inside.environment,
        "mounts": [*inside.weights, *secrets],
    }
