"""Docker on a host, with Compose and NVIDIA's container toolkit."""

from pyinfra.context import ctx_host

from sparkwright.checks.host.docker import LEAST_DOCKER, docker_symptoms, toolkit_symptoms
from sparkwright.checks.host.judge import CHECKS
from sparkwright.facts.observation import observed
from sparkwright.operations.lib.changing import Commands, operation, verified


@operation()
def verify(minimum: int = LEAST_DOCKER) -> Commands:
    """Fail the host unless it runs Docker with Compose. The operation changes nothing.

    Args:
        minimum: major version of Docker.

    **Example:**

    .. code:: python

        docker.verify(minimum=25)
    """
    seen = observed(ctx_host.get())
    version = seen.docker.version if seen.docker else "?"
    yield from verified(
        CHECKS.report(docker_symptoms(seen, minimum)), f"Docker {version} with Compose"
    )


@operation()
def verify_container_toolkit() -> Commands:
    """Fail the host unless it has NVIDIA's container toolkit. The operation changes nothing.

    **Example:**

    .. code:: python

        docker.verify_container_toolkit()
    """
    seen = observed(ctx_host.get())
    yield from verified(
        CHECKS.report(toolkit_symptoms(seen)), seen.toolkit.out.strip().partition("\n")[0]
    )
