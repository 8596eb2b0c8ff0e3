"""Docker, Compose and NVIDIA's container toolkit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.findings.finding import Finding
from sparkwright.preflight.checks import CARDS, HostCheck, error, warning

LEAST_DOCKER = 25
_INSTALL = "install Docker: https://docs.docker.com/engine/install/ (DGX OS has it preinstalled)"
_CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


def check(host: HostCheck) -> Iterator[Finding]:
    """Docker's daemon, the Compose plugin and the container toolkit."""
    yield from _docker(host)
    yield from _compose(host)
    yield from _toolkit(host)


def _docker(host: HostCheck) -> Iterator[Finding]:
    probe = host.probe
    needed, reason = f"Docker >= {LEAST_DOCKER}, running", "services run in containers"
    if not probe.docker_found:
        yield error("docker", "docker is not installed", needed, reason, _INSTALL, CARDS)
        return
    if probe.sudo is None:
        if probe.docker is None:
            start = "sudo systemctl enable --now docker"
            yield error("docker", "the Docker daemon does not answer", needed, reason, start)
            return
        version = probe.docker.version
        major = re.match(r"\d+", version or "")
        if major is None or int(major[0]) < LEAST_DOCKER:
            old = "older Docker lacks what the compose files use"
            yield error("docker", f"Docker {version}", needed, old, _INSTALL, CARDS)
    if not probe.docker_socket:
        yield warning(
            "docker-user", f"user {probe.user} may not use Docker without sudo",
            "membership of the group docker",
            "sparkwright works through sudo, but your own docker commands fail",
            f"sudo usermod -aG docker {probe.user}, then log in again",
        )  # fmt: skip


def _compose(host: HostCheck) -> Iterator[Finding]:
    version = host.probe.compose.out.strip().lstrip("v")
    usable = host.probe.compose.code == 0 and re.match(r"[2-9]", version)
    if host.probe.docker_found and not usable:
        yield error(
            "docker-compose", version or "the compose plugin is not installed", "Docker Compose v2",
            "services are started by 'docker compose'",
            "sudo apt install docker-compose-plugin, or docker-compose-v2 (Ubuntu's own)",
        )  # fmt: skip


def _toolkit(host: HostCheck) -> Iterator[Finding]:
    toolkit, docker = host.probe.toolkit, host.probe.docker
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
