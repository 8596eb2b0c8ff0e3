"""Rendered services: each planned service as it must run on its host."""

import hashlib
from dataclasses import replace
from typing import Any, TypeVar

from sparkwright.catalog.gpus import GPUS, LEAST_SPARK_GIB
from sparkwright.config.settings import EVERY_ADDRESS, LOOPBACK
from sparkwright.config.templates import template
from sparkwright.engines import engine, metric_names
from sparkwright.engines.engine import Command, Launch
from sparkwright.host.lib.ranks import SERVED, RankConfig
from sparkwright.host.proxy.pool import ADMIN, HEALTH, MARK, MASTER, Pool
from sparkwright.host.service import Service, SmokeRequest
from sparkwright.plan.container import (
    BOOT_CACHES_MOUNT,
    OFFLOAD_MOUNT,
    SECRETS_MOUNT,
    SHM_GIB,
    SOCKET_MOUNT,
    container_entrypoint,
)
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.ranks import rank_environment
from sparkwright.resolve.lock import Resolution
from sparkwright.text.sizes import GIB
from sparkwright.tls.host_certificates import certificate_place

T = TypeVar("T")
#: Requests after a start, before a service counts as ready: the first requests compile kernels.
WARM_UPS = 2
#: Largest memory of a compiler's job in GiB: nvcc of FlashInfer takes 3 to 8 (flashinfer#3634,
#: vllm#54237). Four jobs built on a machine where a build with one job per core was killed
#: (flashinfer#3636).
_JOB_GIB, _MOST_JOBS = 8, 4

#: Command that starts the engine of a rank: its unit's main process is the rank's program.
_UP = (
    *("/usr/bin/docker", "compose", "--ansi", "never", "up", "--pull", "never", "--no-color"),
    *("--no-log-prefix", "--abort-on-container-exit", "--exit-code-from", "engine"),
)


def container_command(service: ServicePlan) -> Command:
    """Command line and environment of a service's container, in its engine's form."""
    own, container, rank = engine(service.engine), service.container, service.rank
    fabric = _fabric(service) if rank and rank.shape is None else {}
    return own.command(
        carried(
            Launch,
            service,
            model="/".join(filter(None, (service.body.mount, service.file))),
            served_names=[n for n in service.served_names if n not in service.adapters],
            projector=service.projector and f"{service.body.mount}/{service.projector}",
            # On a separate network, Docker publishes the port at bind.
            host=service.bind if service.network == "host" else "0.0.0.0",
            socket=f"{SOCKET_MOUNT}/http.sock" if service.socket else None,
            arguments=dict(service.arguments),
            media_domains=service.settings.media_domains,
            environment={**_compiler(service), **fabric, **dict(service.environment)},
            caches=BOOT_CACHES_MOUNT if container.boot_caches else None,
        )
    )


def _compiler(service: ServicePlan) -> dict[str, str]:
    """Return variables that limit a first boot's compilers, which otherwise start one job for each
    core.
    """
    # Other services do not count: a new or removed service must not change this service's release.
    own, needs = engine(service.engine), service.recipe.needs
    if not own.compiles:
        return {}
    share = own.limits(dict(service.arguments)).share
    shared = GPUS["gb10"] in needs.compute_caps
    free = LEAST_SPARK_GIB * (1 - (share or 0.9)) if shared else needs.memory_gib
    return {"MAX_JOBS": str(min(_MOST_JOBS, max(1, int(free / _JOB_GIB)))), "NVCC_THREADS": "1"}


def service_home(plan: HostPlan, service: ServicePlan) -> str:
    """A service's directory on its host."""
    return f"{plan.settings.services_root}/services/{service.name}"


def render_service(
    plan: HostPlan, service: ServicePlan, resolution: Resolution, *, others: bool = False
) -> Service:
    """Render a service of a host. The same plan and resolution give the same service.

    All ranks of a cluster's service have one release, with a part for each rank: the id covers
    every rank's texts.

    Args:
        others: whether other hosts also serve the service, behind one address.
    """
    rank = service.rank
    ranks = [replace(rank, number=number) for number in range(len(rank.hosts))] if rank else [None]
    contexts = [rendered_from(plan, replace(service, rank=each), resolution) for each in ranks]
    context = contexts[rank.number if rank else 0]
    unit, compose = template("serving/unit.service.j2"), template("serving/compose.yaml.j2")
    # The compose file's label has the release's name, so the name is made from the files without
    # this label.
    nameless = [f"{compose.render(each, release='')}\0{unit.render(each)}" for each in contexts]
    release = hashlib.sha256("\0".join(nameless).encode()).hexdigest()[:12]
    home, settings = service_home(plan, service), plan.settings
    times = settings.rollout.notice_seconds, settings.rollout.drain_seconds
    return carried(
        Service,
        service.settings,
        settings.rollout,
        name=service.name,
        home=home,
        release=release,
        recipe=service.recipe.name,
        tag=service.image.tag,
        compose=compose.render(context, release=release),
        unit_text=unit.render(context),
        image=str(context["image"]),
        gate=_gate(plan, service, resolution),
        models={model.repository: resolution.model(model).commit for model in service.models},
        ports=() if service.follower else (service.port,),
        pool=Pool(service.name, ADMIN, MASTER, *times, others) if service.proxy else None,
        second_boot=settings.second_boot and service.container.boot_caches,
        members=plan.groups.get(service.settings.exclusive or "", ()),
        nap=service.sleep.nap if service.sleep else None,
        bridge=service.bridge,
        outgoing=service.outgoing,
        contents={file.name: file.text for file in service.files},
        offload_directory=service.offload_directory,
        secret_names=tuple(secret.name for secret in service.settings.secrets),
        rank=carried(RankConfig, rank, command=_UP, environment=_fabric(service)) if rank else None,
    )


def carried(record: type[T], *sources: object, **values: object) -> T:
    """Make a host's record: fields that a source has under the same name, and given values.

    A setting that the host needs unchanged is a field of the record and needs no further code.
    """
    fields = record.__dataclass_fields__  # type: ignore[attr-defined]
    same = {name: getattr(each, name) for each in sources for name in fields if hasattr(each, name)}
    return record(**{**same, **values})


def engine_at(service: ServicePlan) -> tuple[str, int]:
    """Address and port at which a host reaches a service's engine; for a socket its path, and 0."""
    return (service.socket, 0) if service.socket else (_local(service.bind), service.port)


def _local(bind: str) -> str:
    return LOOPBACK if bind in EVERY_ADDRESS else bind


def _fabric(service: ServicePlan) -> dict[str, str]:
    """Variables by which a service's engine reaches the other ranks."""
    return rank_environment(service.rank, engine(service.engine)) if service.rank else {}


def _gate(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> SmokeRequest:
    """The smoke test that decides whether a service counts as started."""
    program, home = engine(service.engine), service_home(plan, service)
    routes = program.kinds(dict(service.arguments), service.task)
    address, port = engine_at(service)
    return carried(
        SmokeRequest,
        service,
        service.settings.smoke,
        program.probes,
        routes=routes,
        model_files=f"{plan.settings.models_root}/{resolution.model(service.body).directory}",
        address=address,
        port=port,
        secrets=f"{home}/secrets.env",
        adapters=tuple(service.adapters),
        warm_ups=WARM_UPS if "chat" in routes else 0,
        proxy=(_local(service.bind), service.port) if service.proxy else None,
        certificate=certificate_place(home) if service.proxy else None,
        speculates=program.limits(dict(service.arguments)).speculates,
        metric_names=metric_names(),
    )


def rendered_from(plan: HostPlan, service: ServicePlan, resolution: Resolution) -> dict[str, Any]:
    """Variables of the templates of a service's files.

    The values include ``entrypoint`` and ``command``, the container's words, with the API key's
    file at ``SECRETS_MOUNT``; ``weights``, pairs of a directory on the host and its path in the
    container; ``shm_gib``, the size of /dev/shm; ``drop_caches``, whether the host's page cache is
    dropped before a start.
    """
    settings, rank, home = plan.settings, service.rank, service_home(plan, service)
    container, command = service.container, container_command(service)
    program = engine(service.engine).program if service.variables else None
    offload = service.kv_offload
    room = int(offload.gib * GIB) if offload and offload.disk else 0
    rdma = rank is not None and rank.shape is not None
    if rdma:
        # RDMA needs memory that the kernel never moves.
        container = replace(container, cap_add=tuple(sorted({*container.cap_add, "IPC_LOCK"})))
    return {
        "service": service,
        "rank": rank,
        "image": resolution.image(service.image).local_name(service.image),
        "offload_mount": OFFLOAD_MOUNT,
        "home": home,
        "container": container,
        "healthcheck": engine(service.engine).healthcheck,
        "memlock": service.recipe.memlock or rdma,
        "boot_caches": BOOT_CACHES_MOUNT,
        "mark": f"{home}/{SERVED}" if service.follower else f"{HEALTH}/{service.name}{MARK}",
        "socket_mount": SOCKET_MOUNT,
        # A follower has no clients, so it gets no key.
        "entrypoint": [service.entrypoint]
        if service.follower
        else container_entrypoint(
            service.entrypoint, program=program, socket=bool(service.socket), offloaded=room
        ),
        "secrets": [
            *([] if service.follower else [(f"{home}/secrets.env", SECRETS_MOUNT)]),
            *(
                (f"{home}/secrets/{secret.name}", f"/run/secrets/{secret.name}")
                for secret in service.settings.secrets
            ),
        ],
        # A KV cache in RAM is shared memory.
        "shm_gib": (service.recipe.shm_gib or SHM_GIB) + service.offload_ram_gib,
        "drop_caches": settings.drop_caches and GPUS["gb10"] in service.recipe.needs.compute_caps,
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        "command": command.arguments,
        "environment": command.environment,
        "weights": [
            (f"{settings.models_root}/{resolution.model(model).directory}", model.mount)
            for model in service.models
        ],
    }
