"""What lies on a host's disk of models, images and releases; and what of it is pruned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.host import disk_usage as program
from sparkwright.host.disk_usage import DiskUsage, DiskUsageRequest
from sparkwright.operations.changing import Commands, change, operation


@operation()
def pruned(
    request: DiskUsageRequest,
    *,
    answered: Callable[[DiskUsage], None] | None = None,
    break_lock: bool = False,
) -> Commands:
    """Have nothing on the host's disk that neither the plan nor a kept release needs.

    Directories without a receipt are never removed.

    Args:
        request: what is needed.
        answered: called with everything that was there, and what of it is gone.
        break_lock: whether to take the lock from another run.
    """
    usage = listed(ctx_host.get(), request)
    idle = [one for one in usage.things if not one.used_by and one.fault != "has no receipt"]
    if not idle and answered:
        answered(usage)

    def act(host: Host) -> Sequence[str]:
        done = ask(host, program, replace(request, prune=True), DiskUsage, timeout=600)
        memory(host).forget()
        if answered:
            answered(done)
        return [f"removed {one.kind} {one.name}" for one in done.things if one.removed]

    yield from change(
        [f"remove {one.kind} {one.name}" for one in idle], act,
        services_root=request.services_root, break_lock=break_lock,
        otherwise="everything there is needed",
    )  # fmt: skip


def listed(host: Host, request: DiskUsageRequest) -> DiskUsage:
    """What lies on the host's disk, and who needs it. One remote execution.

    Raises:
        HostError: when the host does not answer.
    """
    return ask(host, program, request, DiskUsage, timeout=600)
