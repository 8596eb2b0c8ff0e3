"""Start, stop or restart a host's services on request, or take a host out of the pools."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host

from sparkwright.engines import log_patterns
from sparkwright.facts.asking import HostError, ask
from sparkwright.host import control as program
from sparkwright.host import maintenance as maintenance_program
from sparkwright.host.control import STOP, ControlAnswer, ControlRequest
from sparkwright.host.maintenance import MaintenanceAnswer, MaintenanceRequest
from sparkwright.operations.lib.changing import Commands, accept, change, operation, unheard
from sparkwright.operations.lib.switching import shown

#: Seconds for a first boot of the largest models, and for systemd to stop a hanging service.
_BOOT, _STOP = 5400, 300
#: Longest time in seconds for a service to leave its proxy, by the settings' defaults.
_DRAIN = 607.0


@operation()
def controlled(
    request: ControlRequest,
    *,
    answered: Callable[[ControlAnswer], object] = unheard,
    unless: Callable[[], str | None] = lambda: None,
    drain: float = _DRAIN,
) -> Commands:
    """Start, stop or restart services of a host.

    A stop ignores another run's lock on the host, since that run may have died.

    Args:
        answered: function called with the completed steps, also after a partial failure.
        unless: function that returns a reason to skip the action, or None.
        drain: longest time in seconds for a service to leave its proxy.

    **Example:**

    .. code:: python

        from sparkwright.operations import ControlRequest, control

        control.controlled(request=ControlRequest("restart", services=("chat",)))
    """
    services = ", ".join(request.services) if request.services is not None else "every service"

    def act(host: Host) -> Sequence[str]:
        if reason := unless():
            raise HostError(reason)
        asked = replace(request, boot_lines=log_patterns("boot"))
        with shown(host, str(program.progress(request.services_root).parent)):
            answer = ask(host, program, asked, ControlAnswer, timeout=drain + _STOP + _BOOT)
        accept(answer, answered)
        return [f"{name}: {done}" for name, done in answer.done.items()]

    yield from change([f"{request.action} {services}"], act, emergency=request.action == STOP)


@operation()
def in_maintenance(
    request: MaintenanceRequest,
    *,
    answered: Callable[[MaintenanceAnswer], object] = unheard,
    drain: float = _DRAIN,
) -> Commands:
    """Take a host out of every pool and out of deploys, or put it back.

    Args:
        answered: function called with the completed steps, also if the host stays in maintenance.
        drain: longest time in seconds for a service to leave its proxy.

    **Example:**

    .. code:: python

        from sparkwright.operations import MaintenanceRequest, control

        control.in_maintenance(request=MaintenanceRequest(True))
    """

    def act(host: Host) -> Sequence[str]:
        timeout = drain + _BOOT
        answer = ask(host, maintenance_program, request, MaintenanceAnswer, timeout=timeout)
        accept(answer, answered)
        return answer.done

    yield from change([f"maintenance {'on' if request.on else 'off'}"], act)
