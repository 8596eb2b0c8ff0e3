"""Models, images and releases on a host's disk: list them and prune them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import ask
from sparkwright.host import disk_usage as program
from sparkwright.host.disk_usage import DiskUsage, DiskUsageRequest
from sparkwright.operations.lib.changing import Commands, change, operation, unheard


@operation()
def pruned(
    request: DiskUsageRequest, *, answered: Callable[[DiskUsage], object] = unheard
) -> Commands:
    """Remove everything from the host's disk that neither the plan nor a kept release needs.

    Directories without a receipt are never removed.

    Args:
        request: request with the needed paths and images.
        answered: function called with all items and the removed items.

    **Example:**

    .. code:: python

        from sparkwright.operations import DiskUsageRequest, disk_usage

        disk_usage.pruned(request=DiskUsageRequest(keep_releases=2))
    """
    usage = listed(ctx_host.get(), request)
    idle = [each for each in usage.things if not each.used_by and each.fault != "has no receipt"]
    if not idle:
        answered(usage)

    def act(host: Host) -> Sequence[str]:
        done = ask(host, program, replace(request, prune=True), DiskUsage, timeout=600)
        answered(done)
        return [f"removed {each.kind} {each.name}" for each in done.things if each.removed]

    yield from change(
        [f"remove {each.kind} {each.name}" for each in idle], act,
        otherwise="all models, images and releases are needed",
    )  # fmt: skip


def listed(host: Host, request: DiskUsageRequest) -> DiskUsage:
    """List the host's disk usage with the users of each entry, in one remote execution.

    Raises:
        HostError: the host does not answer.
    """
    return ask(host, program, request, DiskUsage, timeout=600)
