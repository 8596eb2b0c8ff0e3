"""Judging a host before anything is changed on it: every check, all findings at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpu import Gpu, driver_major, parse_query
from sparkwright.findings.finding import Finding, Severity
from sparkwright.plan.plan import GIB, HostPlan
from sparkwright.plan.release import Release
from sparkwright.preflight.observation import Disk, Listener, Probe
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.references import ImageReference
from sparkwright.resolve.registry import ARCHITECTURES
from sparkwright.resolve.resolution import Resolution

LEAST_DRIVER = 580
LEAST_DOCKER = 25
#: Seconds that a host's clock may differ from the controller's before TLS and logs go wrong.
CLOCK_TOLERANCE = 30
#: Unpacked bytes of an image per byte pulled: the cards give 8-9 GB pulled, 18-22 GB unpacked.
UNPACKED_RATIO = 2.5


#: Units that are no service's.
OWN_UNITS = ("sparkwright-gateway.service", "sparkwright-health.service",
             "sparkwright-recover.service", "sparkwright-watch.service")  # fmt: skip


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
class Wanted:
    """What a host shall be, as far as the checks need it."""

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


def judge(wanted: Wanted, probe: Probe, now: float) -> list[Finding]:
    """Every finding of a host, errors first.

    Args:
        now: the controller's clock at the time of the probe, seconds since the epoch.
    """
    gpus = parse_query(probe.gpu.out) if probe.gpu.code == 0 else []
    # A host with a gateway alone needs neither GPU nor Docker.
    serving = [
        *_driver(probe, gpus),
        *_gpus(wanted, gpus),
        *_docker(probe),
        *_compose(probe),
        *_toolkit(probe),
        *_architecture(wanted, probe, gpus),
    ]
    findings = [
        *_sudo(probe),
        *(serving if wanted.plan.services else ()),
        *_disks(wanted, probe),
        *_memory(wanted, probe, gpus),
        *_ports(wanted, probe),
        *_strays(wanted, probe),
        *_system(probe, now),
    ]
    return sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)


def _error(check: str, found: str, needed: str, why: str, remedy: str) -> Finding:
    return Finding(check, Severity.ERROR, found, needed, why, remedy)


def _warning(check: str, found: str, needed: str, why: str, remedy: str) -> Finding:
    return Finding(check, Severity.WARNING, found, needed, why, remedy)


def _sudo(probe: Probe) -> Iterator[Finding]:
    if probe.sudo is not None:
        yield _error(
            "sudo",
            f"user {probe.user}: {probe.sudo}",
            "sudo without a password, or with one that pyinfra is given",
            "units, Docker and /opt are root's",
            f"'sudo visudo -f /etc/sudoers.d/{probe.user}': {probe.user} ALL=(ALL) NOPASSWD: ALL; "
            "or run pyinfra with --same-sudo-password",
        )


def _driver(probe: Probe, gpus: list[Gpu]) -> Iterator[Finding]:
    why = "the images are built for CUDA 13, which needs driver 580"
    remedy = (
        "DGX OS: DGX Dashboard, or 'sudo apt update && sudo apt dist-upgrade && "
        "sudo fwupdmgr upgrade' and a reboot; "
        "Ubuntu: 'sudo apt install nvidia-driver-580-open' and a reboot"
    )
    needed = f"NVIDIA driver >= {LEAST_DRIVER}"
    if not probe.gpu.found:
        yield _error("nvidia-driver", "nvidia-smi is not installed", needed, why, remedy)
    elif probe.gpu.code is None:
        yield _error(
            "nvidia-driver",
            f"nvidia-smi hangs: {probe.gpu.err}",
            "a driver that answers",
            "a hanging nvidia-smi means a wedged driver or GPU",
            "reboot the host; look for 'NVRM: Xid' in 'sudo dmesg'",
        )
    elif probe.gpu.code != 0:
        said = (probe.gpu.out + probe.gpu.err).strip().splitlines()
        yield _error(
            "nvidia-driver",
            f"nvidia-smi exits with {probe.gpu.code}: {said[0] if said else 'no message'}",
            "a driver that answers",
            "the kernel module and nvidia-smi do not match, or the module is not loaded",
            f"reboot after a driver or kernel update; else {remedy}",
        )
    elif not gpus:
        yield _error(
            "nvidia-driver",
            "nvidia-smi lists no GPU",
            "a GPU",
            "there is nothing to serve on",
            "look for the GPU with 'lspci | grep -i nvidia'",
        )
    else:
        majors = [driver_major(gpu.driver) for gpu in gpus]
        if any(major is None or major < LEAST_DRIVER for major in majors):
            yield _error(
                "nvidia-driver", f"driver {gpus[0].driver or 'unknown'}", needed, why, remedy
            )


def _gpus(wanted: Wanted, gpus: list[Gpu]) -> Iterator[Finding]:
    if not gpus:
        return
    for service in wanted.plan.services:
        needs = service.needs
        fitting = [gpu for gpu in gpus if gpu.compute_cap in needs.compute_caps]
        if not fitting:
            seen = ", ".join(
                f"{gpu.name} (compute capability {gpu.compute_cap or 'unknown'}, {gpu.family})"
                for gpu in gpus
            )
            yield _error(
                "gpu",
                seen,
                f"compute capability {' or '.join(needs.compute_caps)} for recipe {service.recipe}",
                "the image's NVFP4 kernels are for consumer Blackwell (sm_121a, sm_120) only",
                "take a recipe for this GPU, or take the host out of the inventory",
            )
        elif needs.vram_gib is not None:
            most = max((gpu.memory_mib or 0) for gpu in fitting) / 1024
            if most < needs.vram_gib:
                yield _error(
                    "gpu-memory",
                    f"{fitting[0].name}: {most:.1f} GiB",
                    f"{needs.vram_gib:g} GiB for recipe {service.recipe}",
                    "weights, drafter and KV cache must fit into the card's own memory",
                    "take a recipe for a smaller card",
                )


def _docker(probe: Probe) -> Iterator[Finding]:
    install = "install Docker: https://docs.docker.com/engine/install/ (DGX OS has it preinstalled)"
    needed = f"Docker >= {LEAST_DOCKER}, running"
    why = "older Docker lacks what the compose files use"
    if not probe.docker_found:
        yield _error(
            "docker", "docker is not installed", needed, "services run in containers", install
        )
        return
    if probe.sudo is None:
        if probe.docker is None:
            yield _error(
                "docker",
                "the Docker daemon does not answer",
                needed,
                "services run in containers",
                "sudo systemctl enable --now docker",
            )
            return
        major = re.match(r"\d+", probe.docker.version or "")
        if major is None or int(major[0]) < LEAST_DOCKER:
            yield _error("docker", f"Docker {probe.docker.version}", needed, why, install)
    if not probe.docker_socket:
        yield _warning(
            "docker-user",
            f"user {probe.user} may not use Docker without sudo",
            "membership of the group docker",
            "sparkwright works through sudo, but your own docker commands fail",
            f"sudo usermod -aG docker {probe.user}, then log in anew",
        )


def _compose(probe: Probe) -> Iterator[Finding]:
    version = probe.compose.out.strip().lstrip("v")
    if probe.docker_found and (probe.compose.code != 0 or not re.match(r"[2-9]", version)):
        yield _error(
            "docker-compose",
            version or "the compose plugin is not installed",
            "Docker Compose v2",
            "services are started by 'docker compose'",
            "sudo apt install docker-compose-plugin, or docker-compose-v2 (Ubuntu's own)",
        )


def _toolkit(probe: Probe) -> Iterator[Finding]:
    configure = (
        "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
    )
    if not probe.toolkit.found or probe.toolkit.code != 0:
        yield _error(
            "nvidia-container-toolkit",
            "nvidia-ctk is not installed"
            if not probe.toolkit.found
            else f"nvidia-ctk fails: {probe.toolkit.err.strip()}",
            "nvidia-container-toolkit",
            "containers see no GPU without it",
            f"sudo apt install nvidia-container-toolkit, then {configure}",
        )
    elif probe.docker is not None and "nvidia" not in probe.docker.runtimes:
        yield _error(
            "nvidia-runtime",
            f"Docker's runtimes: {', '.join(probe.docker.runtimes) or 'none'}",
            "the runtime nvidia",
            "the toolkit is installed, but Docker was never told of it",
            configure,
        )


def _architecture(wanted: Wanted, probe: Probe, gpus: list[Gpu]) -> Iterator[Finding]:
    own = ARCHITECTURES.get(probe.architecture, probe.architecture)
    for service in wanted.plan.services:
        image = wanted.resolution.image(service.image)
        if own not in image.platforms:
            others = _recipes_for(wanted.catalog, own, {gpu.compute_cap for gpu in gpus})
            yield _error(
                "architecture",
                f"the host is {probe.architecture}; {service.image.pull_name}:{service.image.tag} "
                f"has {', '.join(sorted(image.platforms)) or 'no platform'}",
                f"an image with linux/{own}",
                "an image for another architecture can be pulled but never started; the card "
                "claims RTX 50, and its image has been published for arm64 alone",
                f"recipes of the catalog with linux/{own} for this GPU: {', '.join(others)}"
                if others
                else "take a tag or an image that has this architecture",
            )


def _recipes_for(catalog: Catalog, architecture: str, caps: set[str | None]) -> list[str]:
    """Recipes whose image claims an architecture and that run on one of these GPUs."""
    return sorted(
        recipe.name
        for recipe in catalog.recipes.values()
        if caps & set(recipe.needs.compute_caps)
        and architecture
        in catalog.images[recipe.image]
        .tags[recipe.tag or catalog.images[recipe.image].newest_tag]
        .architectures
    )


def _disks(wanted: Wanted, probe: Probe) -> Iterator[Finding]:
    """What is still to be fetched, against the free bytes of the file system it goes to."""
    settings = wanted.plan.settings
    own = ARCHITECTURES.get(probe.architecture, probe.architecture)
    models = {
        directory: max(0, model.size - probe.partial.get(directory, 0))
        for directory, model in wanted.models().items()
        if probe.models.get(directory, "not asked") is not None
    }
    images: dict[str, int] = {}
    for release in wanted.releases:
        if not probe.images.get(release.image, False):
            platform = wanted.resolution.image(release.service.image).platforms.get(own)
            images[release.image] = platform.pull_bytes if platform else 0
    pulled = sum(images.values())
    parts: list[tuple[str, Disk | None, int]] = [
        (
            f"weights under {settings.models_root}",
            probe.disks.get(settings.models_root),
            sum(models.values()),
        ),
        (
            f"the image's parts under {settings.services_root}",
            probe.disks.get(settings.services_root),
            pulled,
        ),
        ("the image under Docker's root", probe.docker_disk, int(pulled * (1 + UNPACKED_RATIO))),
    ]
    headroom = settings.disk_headroom_gib * GIB
    by_device: dict[int, tuple[list[str], Disk, int]] = {}
    for name, disk, size in parts:
        if disk is None:
            continue
        names, first, total = by_device.get(disk.device, ([], disk, 0))
        by_device[disk.device] = ([*names, f"{size / GIB:.1f} GiB for {name}"], first, total + size)
    for names, disk, total in by_device.values():
        if total and disk.free < total + headroom:
            yield _error(
                "disk",
                f"{disk.free / GIB:.1f} GiB free",
                f"{(total + headroom) / GIB:.1f} GiB: {', '.join(names)}, "
                f"{settings.disk_headroom_gib:g} GiB to stay free",
                "a full disk breaks Docker, the journal and the fetch itself",
                "free space ('docker system df', old models), or set disk_headroom_gib",
            )
        if total and disk.read_only:
            yield _error(
                "disk",
                "the file system is read-only",
                "a writable one",
                "nothing can be fetched to it",
                "look into 'sudo dmesg' for disk errors and remount it",
            )


def _memory(wanted: Wanted, probe: Probe, gpus: list[Gpu]) -> Iterator[Finding]:
    each = [service.needs.memory_gib for service in wanted.plan.services]
    # On unified memory a recipe's need is the whole machine; how services share it is a rule's.
    needed = max(each, default=0) if any(gpu.unified for gpu in gpus) else sum(each)
    total = probe.memory.total / GIB
    if total < needed:
        yield _error(
            "memory",
            f"{total:.1f} GiB (MemTotal)",
            f"{needed:g} GiB for {', '.join(service.name for service in wanted.plan.services)}",
            "weights, KV cache and the system share what the host has",
            "take a recipe that needs less, or fewer services on this host",
        )
        return
    # What our own running services hold counts as theirs already.
    waiting = [
        service.needs.memory_gib
        for service in wanted.plan.services
        if not (
            (state := probe.services.get(service.name))
            and state.container
            and state.container.running
        )
    ]
    available = probe.memory.available / GIB
    if len(waiting) == len(wanted.plan.services) and available < 0.85 * needed:
        yield _warning(
            "memory-available",
            f"{available:.1f} GiB of {total:.1f} GiB available",
            f"about {needed:g} GiB",
            "something else holds memory that the service will want",
            "look with 'ps aux --sort -rss | head'; drop caches with "
            "'sync; echo 3 | sudo tee /proc/sys/vm/drop_caches'",
        )


def _ports(wanted: Wanted, probe: Probe) -> Iterator[Finding]:
    wanted_for = {
        **{door.port: f"the door of {name}" for name, door in wanted.plan.settings.gateway.items()},
        **{
            port: f"service {service.name}"
            for service in wanted.plan.services
            for port in (service.port, *((service.door.port,) if service.door else ()))
        },
    }
    for port, who in sorted(wanted_for.items()):
        listener = probe.ports.get(str(port))
        if listener is None or ours(listener, probe):
            continue
        free, why = f"port {port} free for {who}", "two servers can't listen on one port"
        remedy = f"stop it ('sudo ss -ltnp sport = :{port}' shows it), or take another port"
        if listener.container is None:
            yield _error("port", f"port {port} is taken by {listener.command}", free, why, remedy)
            continue
        name = listener.container.partition(" ")[0]
        found = f"port {port} is taken by the container {name}"
        if wanted.plan.settings.take_over:
            yield _warning(
                "port", found, free, why,
                "nothing: it is taken over, stopped for the service and kept; it comes back when "
                "the service gives no answers, and with `sparkwright remove`",
            )  # fmt: skip
        else:
            yield _error(
                "port", found, free, why,
                f"take it over with --data take_over=True (it is stopped, kept, and comes back "
                f"with `sparkwright remove`), or {remedy}",
            )  # fmt: skip


def strangers(wanted: Wanted, probe: Probe) -> list[str]:
    """``name restart-policy`` of containers that make room for the plan's services."""
    ports = {
        str(port)
        for service in wanted.plan.services
        for port in (service.port, *((service.door.port,) if service.door else ()))
    }
    return sorted(
        {
            listener.container
            for port, listener in probe.ports.items()
            if port in ports and listener.container and not ours(listener, probe)
        }
    )


def _strays(wanted: Wanted, probe: Probe) -> Iterator[Finding]:
    planned = {service.unit for service in wanted.plan.services}
    for unit in probe.unit_files:
        if unit not in planned and unit not in OWN_UNITS:
            name = unit.removeprefix("sparkwright-").removesuffix(".service")
            yield _warning(
                "stray-service",
                f"{unit} is on the host, but the host has no service {name!r} any more",
                "services as the inventory has them",
                "it may hold the port, the GPU and memory that others count on",
                f"sudo systemctl disable --now {unit} && sudo rm /etc/systemd/system/{unit} "
                f"&& sudo rm -r {wanted.plan.settings.services_root}/services/{name}",
            )


def ours(listener: Listener, probe: Probe) -> bool:
    """A listener in a container of any of our services (ports may be exchanged), or in a door."""
    ids = [state.container.id for state in probe.services.values() if state.container]
    return any(one in listener.cgroup for one in (*ids, *OWN_UNITS))


def _system(probe: Probe, now: float) -> Iterator[Finding]:
    if probe.systemd_version is None:
        yield _error(
            "systemd",
            "systemctl does not answer",
            "systemd as the init system",
            "units start the services at boot and after a crash",
            "use a host that was booted with systemd",
        )
    elif probe.systemd.get("SystemState") == "degraded":
        yield _warning(
            "systemd",
            "some units of the host have failed",
            "a host in order",
            "a failed unit may be one that the service needs",
            "systemctl --failed",
        )
    if probe.python < (3, 10):
        yield _error(
            "python",
            f"Python {probe.python[0]}.{probe.python[1]}",
            "Python >= 3.10",
            "the programs that run on the host are written for it",
            "use Ubuntu 22.04, Debian 12 or newer",
        )
    version = re.match(r"(\d+)\.(\d+)", probe.kernel)
    if version and (int(version[1]), int(version[2])) < (5, 15):
        yield _warning(
            "kernel",
            f"Linux {probe.kernel}",
            "Linux >= 5.15",
            "driver 580 is not tried on older kernels",
            "upgrade the distribution",
        )
    skew = probe.time - now
    if abs(skew) > CLOCK_TOLERANCE:
        yield _error(
            "clock",
            f"the host's clock is {skew:+.0f} s off this machine's",
            f"within {CLOCK_TOLERANCE} s",
            "certificates and tokens are refused with a wrong clock",
            "sudo timedatectl set-ntp true",
        )
    elif not probe.clock_synchronised:
        yield _warning(
            "clock",
            "the clock is not synchronised",
            "a synchronised clock",
            "it is right now, but will drift",
            "sudo timedatectl set-ntp true",
        )
