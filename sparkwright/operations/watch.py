"""The watch: a timer on a host that checks services, GPU and disks, and records its findings."""

from collections.abc import Callable

from pyinfra.context import ctx_host

from sparkwright.checks.service.watch_plan import SERVICE, TIMER, Watch
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import laid_out
from sparkwright.host import service_firewall
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.watch import install as program
from sparkwright.host.watch import watch as watch_program
from sparkwright.host.watch.install import WatchInstallRequest
from sparkwright.operations.files import unwritten
from sparkwright.operations.lib.changing import Commands, act_by, change, operation


@operation()
def installed(watch: Watch | None, *, unless: Callable[[], bool] = lambda: False) -> Commands:
    """Install the watch on the host, or remove it.

    Args:
        watch: configuration and units of the watch (``checks.service.watch_plan.watch_of``); None
            removes the watch.
        unless: function called once all earlier steps are done; returns whether the watch stays
            unchanged.

    **Example:**

    .. code:: python

        watch.installed(watch=None)
    """
    host = ctx_host.get()
    if unless():
        host.noop("the planned releases do not run: the watch stays unchanged")
        return
    files = files_of(watch)
    state = observed(host, request_of(files))
    if watch is None:
        pending = ["remove the watch"] if SERVICE in state.unit_files else []
    else:
        pending = unwritten(files, state)
        timer = state.units.get(TIMER, {})
        if timer.get("ActiveState") != "active" or timer.get("UnitFileState") != "enabled":
            pending.append(f"start {TIMER}")
    request = WatchInstallRequest(f"{memory(host).services_root}/watch", TIMER, SERVICE, files)
    yield from change(pending, act_by(program, request), otherwise="the watch is as desired")


def files_of(watch: Watch | None) -> dict[str, tuple[str, int]]:
    """Every file of the watch: text and mode, by path."""
    if watch is None:
        return {}
    texts = {
        **laid_out(watch.home, watch_program, service_firewall),
        watch.config_path: watch.config,
        f"{UNITS}/{SERVICE}": watch.service,
        f"{UNITS}/{TIMER}": watch.timer,
    }
    return {path: (text, 0o644) for path, text in texts.items()}


def request_of(files: dict[str, tuple[str, int]]) -> ObservationRequest:
    """Request for the observation of the watch."""
    return ObservationRequest(files=tuple(files), units=(TIMER,) if files else ())
