"""Docker, Compose and NVIDIA's container toolkit."""

import re
from collections.abc import Iterator

from sparkwright.checks.host import facts, remedies
from sparkwright.findings.check import Symptom, check
from sparkwright.host.observe import Observation

LEAST_DOCKER = 25
#: Programs with the name docker that are not Docker Engine.
OTHER_DOCKERS = ("snap", "desktop", "rootless", "podman")


@check("docker-kind", "docker", "docker-user", "docker-compose", "nvidia-container-toolkit")
def _docker(host: facts.HostFacts) -> Iterator[Symptom]:
    if host.plan.services or host.plan.page_images:
        yield from docker_symptoms(host.observed, LEAST_DOCKER)
    if host.plan.services:
        yield from toolkit_symptoms(host.observed)


def docker_symptoms(observed: Observation, least: int) -> Iterator[Symptom]:
    """Return faults of Docker and its Compose plugin; Docker must have at least this major
    version.
    """
    on, kind = observed.distribution, observed.docker_kind
    if kind in OTHER_DOCKERS:
        yield Symptom("docker-kind", kind, install=remedies.install("docker", on))
    else:
        case, version = _fault(observed, least), observed.docker and observed.docker.version
        if case:
            own = remedies.install("docker", on)
            yield Symptom("docker", case, least=least, version=version, install=own)
        if case in ("", "old") and not observed.docker_socket:
            yield Symptom("docker-user", user=observed.user)
    compose = observed.compose.out.strip().lstrip("v")
    usable = observed.compose.code == 0 and re.match(r"[2-9]", compose)
    if observed.docker_found and not usable:
        there = compose or "the compose plugin is not installed"
        yield Symptom("docker-compose", observed=there, install=remedies.install("compose", on))


def _fault(observed: Observation, least: int) -> str:
    """Return the case of the check: absent, silent or old; empty without a fault."""
    if not observed.docker_found:
        return "absent"
    if observed.sudo is not None:  # Docker was not queried
        return ""
    if observed.docker is None:
        return "silent"
    major = re.match(r"\d{1,9}", observed.docker.version or "")
    return "old" if major is None or int(major[0]) < least else ""


def toolkit_symptoms(observed: Observation) -> Iterator[Symptom]:
    """Return faults of NVIDIA's container toolkit.

    The runtime named nvidia is not required: Sparks work without it. A test container proves that
    containers see the GPU (operations.gpu.seen_in_containers).
    """
    toolkit = observed.toolkit
    if not toolkit.installed or toolkit.code != 0:
        yield Symptom(
            "nvidia-container-toolkit",
            "fails" if toolkit.installed else "",
            message=toolkit.err.strip(),
            install=remedies.install("toolkit", observed.distribution),
        )
