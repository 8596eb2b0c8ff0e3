"""Changes that commands make on hosts: operations with their requests and answers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyinfra.api.host import Host

from sparkwright.host.control import RESTART, ControlAnswer, ControlRequest
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.exclusive.activate import ActivateAnswer, ActivateRequest
from sparkwright.host.maintenance import MaintenanceAnswer, MaintenanceRequest
from sparkwright.host.removal import RemovalAnswer
from sparkwright.operations import control, disk_usage, exclusive, removal
from sparkwright.operations.lib import locks
from sparkwright.operations.lib.changing import Commands, look, operation
from sparkwright.run import questions
from sparkwright.run.state import HostRun

#: Names of a host's services; None for all services.
ServicesOf = Callable[[str], tuple[str, ...] | None]


def controlled(
    host: Host, run: HostRun, answers: dict[str, ControlAnswer], *, action: str,
    services: ServicesOf, **more: Any,
) -> None:  # fmt: skip
    """Start, stop or restart services of each host; hosts restart one after the other.

    Args:
        services: function that returns the names of a host's services.
        more: fields ``why``, ``now``, ``keep`` and ``wait`` of ``ControlRequest``.
    """
    root = run.settings.services_root
    request = ControlRequest(action, services(host.name), root, locks.OWNER.by, **more)
    restarts = action == RESTART
    control.controlled(
        name=f"Services: {action}",
        request=request,
        drain=_drain(run),
        unless=partial(_failed, answers, "restarted") if restarts else lambda: None,
        # Hosts restart one after the other, so that the other replicas serve.
        _serial=restarts and not request.now,
        answered=partial(answers.__setitem__, host.name),
    )


def activated(
    host: Host, run: HostRun, answers: dict[str, ActivateAnswer], *, service: str, **more: Any
) -> None:
    """Activate an exclusive service instead of the active service of its group, host after host.

    Args:
        more: fields ``why`` and ``dry`` of ``ActivateRequest``.
    """
    request = ActivateRequest(service, run.settings.services_root, locks.OWNER.by, **more)
    exclusive.activated(
        name=f"Services: activate {service}",
        request=request,
        unless=partial(_failed, answers, "switched"),
        _serial=not request.dry,
        answered=partial(answers.__setitem__, host.name),
    )


def _drain(run: HostRun) -> float:
    """Return the longest time in seconds until the services are drained."""
    return run.settings.rollout.notice_seconds + run.settings.rollout.drain_seconds


def _failed(answers: Mapping[str, ControlAnswer | ActivateAnswer], done: str) -> str | None:
    """Return the reason to change no further host: an earlier host does not answer."""
    failed = [name for name, answer in answers.items() if answer.faults]
    return f"not {done}, since {failed[0]} does not answer" if failed else None


def in_maintenance(
    host: Host, run: HostRun, answers: dict[str, MaintenanceAnswer], *, on: bool, why: str = ""
) -> None:
    """Take each host out of every pool, or put the host back once it answers."""
    root = run.settings.services_root
    control.in_maintenance(
        name=f"Maintenance: {'on' if on else 'off'}",
        request=MaintenanceRequest(on, root, locks.OWNER.by, why),
        drain=_drain(run),
        answered=partial(answers.__setitem__, host.name),
    )


def pruned(host: Host, run: HostRun, answers: dict[str, DiskUsage]) -> None:
    """Remove everything that neither the plan nor a kept release needs.

    Without a plan, models and images stay.
    """
    request = questions.disk_usage_request(run)
    disk_usage.pruned(
        name="Models: prune", request=request, answered=partial(answers.__setitem__, host.name)
    )


def removed(
    host: Host, _: HostRun, answers: dict[str, RemovalAnswer], *, services: ServicesOf, **more: Any
) -> None:
    """Remove services, releases, units, images and, on request, weights from the host.

    Args:
        services: function that returns the names of a host's services.
        more: ``weights`` and ``bootstrap`` of the operation.
    """
    removal.removed(
        name="Remove: services, units, images",
        services=services(host.name),
        **more,
        answered=partial(answers.__setitem__, host.name),
    )


def verified(host: Host, run: HostRun, _: dict[str, None]) -> None:
    """Hash every file of the planned models again; a damaged file fails the host."""
    _hashed(name="Models: hash again", run=run)


@operation()
def _hashed(run: HostRun) -> Commands:
    yield from look(lambda host: questions.hashed_again(host, run))
