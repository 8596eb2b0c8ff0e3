"""The GPU of a host: required properties, and a proof that containers see the GPU."""

from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.host import hardware
from sparkwright.checks.host.judge import CHECKS
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.host.observe import Observation
from sparkwright.host.proof import ProofRequest, Versions
from sparkwright.operations.lib import jobs
from sparkwright.operations.lib.changing import Commands, change, operation, verified


@operation()
def verify(
    minimum_driver: int = 580,
    compute_capability: str | Sequence[str] | None = None,
    memory_gib: float | None = None,
) -> Commands:
    """Fail the host unless it has a GPU and driver with these properties. The host is not changed.

    Args:
        minimum_driver: major version of the NVIDIA driver.
        compute_capability: e.g. ``12.1`` (GB10) or ``12.0`` (RTX 50); one of several values must
            match.
        memory_gib: dedicated memory of the card, GiB; a GB10 has no dedicated memory.

    **Example:**

    .. code:: python

        gpu.verify(minimum_driver=580, compute_capability="12.1")
    """
    host = observed(ctx_host.get())
    seen = host.gpu
    symptoms = [*hardware.driver_symptoms(seen, minimum_driver, host.distribution)]
    if compute_capability is not None:
        caps = [compute_capability] if isinstance(compute_capability, str) else compute_capability
        symptoms += hardware.symptoms(seen.gpus, caps, memory_gib, user="")
    first = seen.gpus[0] if seen.gpus else None
    yield from verified(
        CHECKS.report(symptoms), f"{first.name}, driver {first.driver}" if first else ""
    )


@operation()
def seen_in_containers(images: Sequence[str]) -> Commands:
    """Prove that a container of each image sees the GPU: ``nvidia-smi`` is run inside the
    container.

    The proof is made once, and again if the driver, Docker or the toolkit has another version.

    Args:
        images: names in the host's Docker.

    **Example:**

    .. code:: python

        gpu.seen_in_containers(images=["vllm/vllm-openai:v0.24.0"])
    """
    seen = observed(ctx_host.get())
    versions = _versions(seen)
    todo = [image for image in images if seen.gpu_checks.get(image) != versions]

    def act(host: Host) -> Sequence[str]:
        request = ProofRequest(
            gpu_images=tuple(todo),
            record=f"{memory(host).services_root}/state/gpu-check.json",
            versions=versions,
        )
        jobs.prove(host, request)
        return ["a container sees the GPU"]

    yield from change(
        ["run nvidia-smi inside the image"] if todo else [], act,
        otherwise="the GPU check passed with these versions of driver, Docker and toolkit",
    )  # fmt: skip


def _versions(seen: Observation) -> Versions:
    """Versions that the proof depends on."""
    gpus, toolkit = seen.gpu.gpus, seen.toolkit.out.strip().splitlines()
    return Versions(
        driver=gpus[0].driver or "" if gpus else "",
        docker=(seen.docker.version or "") if seen.docker else "",
        toolkit=toolkit[0] if toolkit else "",
    )
