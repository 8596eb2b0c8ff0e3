"""Docker, Compose and NVIDIA's container toolkit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.host import remedies
from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
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


@check("docker-kind", "docker", "docker-user", "docker-compose")
def _docker(host: HostFacts) -> Iterator[Symptom]:
    if host.plan.services:
        yield from docker_symptoms(host.observed, LEAST_DOCKER)


@check("nvidia-container-toolkit")
def _toolkit(host: HostFacts) -> Iterator[Symptom]:
    if host.plan.services:
        yield from toolkit_symptoms(host.observed)


def docker_symptoms(observed: Observation, least: int) -> Iterator[Symptom]:
    """Faults of Docker and its Compose plugin, for a host that needs this major version."""
    install = remedies.docker(observed.distribution)
    if observed.docker_kind in OTHER_DOCKERS:
        kind, reason, first = OTHER_DOCKERS[observed.docker_kind]
        engine = "Docker Engine, as root's own service"
        yield Symptom(kind, engine, reason=reason, remedy=f"{first}{install}", check="docker-kind")
    else:
        yield from _daemon(observed, least, install)
    version = observed.compose.out.strip().lstrip("v")
    usable = observed.compose.code == 0 and re.match(r"[2-9]", version)
    if observed.docker_found and not usable:
        missing = version or "the compose plugin is not installed"
        remedy = remedies.compose(observed.distribution)
        yield Symptom(missing, "Docker Compose v2", remedy=remedy, check="docker-compose")


def _daemon(observed: Observation, least: int, install: str) -> Iterator[Symptom]:
    fault = Symptom("docker is not installed", f"Docker >= {least}, running", check="docker")
    if not observed.docker_found:
        yield replace(fault, remedy=install)
        return
    if observed.sudo is None:
        if observed.docker is None:
            yield replace(
                fault,
                observed="the Docker daemon does not answer",
                remedy="sudo systemctl enable --now docker",
                source="sparkwright",
            )
            return
        version = observed.docker.version
        major = re.match(r"\d{1,9}", version or "")
        if major is None or int(major[0]) < least:
            old = "older Docker lacks what the compose files use"
            yield replace(fault, observed=f"Docker {version}", reason=old, remedy=install)
    if not observed.docker_socket:
        yield Symptom(
            f"user {observed.user} may not use Docker without sudo",
            "membership of the group docker",
            remedy=f"sudo usermod -aG docker {observed.user}, then log in again",
            check="docker-user",
        )


def toolkit_symptoms(observed: Observation) -> Iterator[Symptom]:
    """Faults of NVIDIA's container toolkit.

    A runtime named nvidia is not needed: good Sparks have none. That a container sees the GPU is
    proved by a container (operations.gpu.seen_in_containers).
    """
    toolkit = observed.toolkit
    if not toolkit.found or toolkit.code != 0:
        fails = f"nvidia-ctk fails: {toolkit.err.strip()}"
        yield Symptom(
            fails if toolkit.found else "nvidia-ctk is not installed",
            "nvidia-container-toolkit",
            remedy=remedies.toolkit(observed.distribution),
            check="nvidia-container-toolkit",
        )
