"""Docker, Compose and NVIDIA's container toolkit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.host import remedies
from sparkwright.checks.host.facts import CARDS, HOSTS, HostCheck, error, warning
from sparkwright.findings.finding import Finding
from sparkwright.host.observation import Observation

LEAST_DOCKER = 25
#: What is called docker and is not Docker Engine: what it is, why it can't serve, and what comes
#: before Docker is installed.
OTHER_DOCKERS = {
    "snap": (
        "Docker is snap's", "a snap can't see /opt/models, and has no docker.service for the units",
        "sudo snap remove --purge docker (its containers go with it), then ",
    ),
    "desktop": (
        "Docker is Docker Desktop's", "it runs in a virtual machine that has no NVIDIA GPU",
        "sudo apt remove docker-desktop, then ",
    ),
    "rootless": (
        "Docker runs rootless, as a user's service",
        "units of the system can't start its containers, and its limits are that user's",
        "have the system's service beside it: ",
    ),
    "podman": (
        "docker is Podman's (podman-docker)",
        "its answers differ from Docker's where Compose, the GPU and restarts are concerned",
        "sudo apt remove podman-docker, then ",
    ),
}  # fmt: skip


def check(host: HostCheck) -> Iterator[Finding]:
    """Docker's daemon, the Compose plugin and the container toolkit."""
    yield from docker_findings(host.observed, LEAST_DOCKER)
    yield from toolkit_findings(host.observed)


def docker_findings(observed: Observation, least: int) -> Iterator[Finding]:
    """What is wrong with Docker and its Compose plugin.

    Args:
        least: the major version of Docker that is needed.
    """
    yield from _docker(observed, least)
    yield from _compose(observed)


def _docker(observed: Observation, least: int) -> Iterator[Finding]:
    install = remedies.docker(observed.distribution)
    needed, reason = f"Docker >= {least}, running", "services run in containers"
    if observed.docker_kind in OTHER_DOCKERS:
        what, why, first = OTHER_DOCKERS[observed.docker_kind]
        service = "Docker Engine, as root's own service"
        yield error("docker-kind", what, service, why, f"{first}{install}", HOSTS)
        return
    if not observed.docker_found:
        yield error("docker", "docker is not installed", needed, reason, install, CARDS)
        return
    if observed.sudo is None:
        if observed.docker is None:
            start = "sudo systemctl enable --now docker"
            yield error("docker", "the Docker daemon does not answer", needed, reason, start)
            return
        version = observed.docker.version
        major = re.match(r"\d{1,9}", version or "")
        if major is None or int(major[0]) < least:
            old = "older Docker lacks what the compose files use"
            yield error("docker", f"Docker {version}", needed, old, install, CARDS)
    if not observed.docker_socket:
        yield warning(
            "docker-user", f"user {observed.user} may not use Docker without sudo",
            "membership of the group docker",
            "sparkwright works through sudo, but your own docker commands fail",
            f"sudo usermod -aG docker {observed.user}, then log in again",
        )  # fmt: skip


def _compose(observed: Observation) -> Iterator[Finding]:
    version = observed.compose.out.strip().lstrip("v")
    usable = observed.compose.code == 0 and re.match(r"[2-9]", version)
    if observed.docker_found and not usable:
        yield error(
            "docker-compose", version or "the compose plugin is not installed", "Docker Compose v2",
            "services are started by 'docker compose'",
            remedies.compose(observed.distribution),
        )  # fmt: skip


def toolkit_findings(observed: Observation) -> Iterator[Finding]:
    """What is wrong with NVIDIA's container toolkit.

    A runtime named nvidia is not asked for: good Sparks have none, and nothing of ours needs it.
    That a container sees the GPU is proved by one (operations.gpu.seen_in_containers).
    """
    toolkit = observed.toolkit
    if not toolkit.found or toolkit.code != 0:
        found = f"nvidia-ctk fails: {toolkit.err.strip()}"
        yield error(
            "nvidia-container-toolkit",
            found if toolkit.found else "nvidia-ctk is not installed", "nvidia-container-toolkit",
            "containers have no GPU without it",
            remedies.toolkit(observed.distribution), CARDS,
        )  # fmt: skip
