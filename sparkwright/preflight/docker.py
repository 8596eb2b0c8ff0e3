"""Docker, Compose and NVIDIA's container toolkit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.findings.finding import Finding
from sparkwright.host.contracts.observation import Observation
from sparkwright.preflight.checks import CARDS, HostCheck, error, warning

LEAST_DOCKER = 25
_INSTALL = "install Docker: https://docs.docker.com/engine/install/ (DGX OS has it preinstalled)"
_CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


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
    needed, reason = f"Docker >= {least}, running", "services run in containers"
    if not observed.docker_found:
        yield error("docker", "docker is not installed", needed, reason, _INSTALL, CARDS)
        return
    if observed.sudo is None:
        if observed.docker is None:
            start = "sudo systemctl enable --now docker"
            yield error("docker", "the Docker daemon does not answer", needed, reason, start)
            return
        version = observed.docker.version
        major = re.match(r"\d+", version or "")
        if major is None or int(major[0]) < least:
            old = "older Docker lacks what the compose files use"
            yield error("docker", f"Docker {version}", needed, old, _INSTALL, CARDS)
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
            "sudo apt install docker-compose-plugin, or docker-compose-v2 (Ubuntu's own)",
        )  # fmt: skip


def toolkit_findings(observed: Observation) -> Iterator[Finding]:
    """What is wrong with NVIDIA's container toolkit."""
    toolkit, docker = observed.toolkit, observed.docker
    if not toolkit.found or toolkit.code != 0:
        found = f"nvidia-ctk fails: {toolkit.err.strip()}"
        yield error(
            "nvidia-container-toolkit",
            found if toolkit.found else "nvidia-ctk is not installed", "nvidia-container-toolkit",
            "containers have no GPU without it",
            f"sudo apt install nvidia-container-toolkit, then {_CONFIGURE}", CARDS,
        )  # fmt: skip
    elif docker is not None and "nvidia" not in docker.runtimes:
        yield error(
            "nvidia-runtime", f"Docker's runtimes: {', '.join(docker.runtimes) or 'none'}",
            "the runtime nvidia", "the toolkit is installed, but not configured in Docker",
            _CONFIGURE, CARDS,
        )  # fmt: skip
