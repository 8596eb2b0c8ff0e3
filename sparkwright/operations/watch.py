"""The watch: a timer on a host that looks at services, GPU and disks, and records what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.service.watch_plan import SERVICE, TIMER, Watch
from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import laid_out
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.observation import ObservationRequest
from sparkwright.host.watch import install as program
from sparkwright.host.watch import watch as watch_program
from sparkwright.host.watch.install import WatchInstallRequest
from sparkwright.operations.changing import SERVICES_ROOT, Commands, change, operation
from sparkwright.plan.missing import unwritten


@operation()
def installed(
    watch: Watch | None,
    *,
    unless: Callable[[], bool] = lambda: False,
    services_root: str = SERVICES_ROOT,
    break_lock: bool = False,
) -> Commands:
    """Have the watch on the host, or none.

    Args:
        watch: its configuration and units (``checks.service.watch.watch_of``); None takes it away.
        unless: asked once everything before is done: whether it stays as it is.
        services_root: where the host's lock lies.
        break_lock: whether to take the lock from another run.
    """
    if unless():
        ctx_host.get().noop("what it would expect does not run: it stays as it is")
        return
    files = files_of(watch)
    request = replace(request_of(files), services_root=services_root)
    seen = observed(ctx_host.get(), request)
    if watch is None:
        pending = ["remove the watch"] if SERVICE in seen.unit_files else []
    else:
        pending = unwritten(files, seen)
        timer = seen.units.get(TIMER, {})
        if timer.get("ActiveState") != "active" or timer.get("UnitFileState") != "enabled":
            pending.append(f"start {TIMER}")

    def act(host: Host) -> Sequence[str]:
        request = WatchInstallRequest(
            home=f"{services_root}/watch", timer=TIMER, service=SERVICE, files=files
        )
        done = ask(host, program, request, tuple[str, ...])
        memory(host).forget()
        return done

    yield from change(
        pending, act, services_root=services_root, break_lock=break_lock,
        otherwise="the watch is as desired",
    )  # fmt: skip


def files_of(watch: Watch | None) -> dict[str, tuple[str, int]]:
    """Every file of the watch: text and mode, by path."""
    if watch is None:
        return {}
    programs = laid_out(watch.home, watch_program)
    return {
        **{path: (text, 0o644) for path, text in programs.items()},
        watch.config_path: (watch.config, 0o644),
        f"{UNITS}/{SERVICE}": (watch.service, 0o644),
        f"{UNITS}/{TIMER}": (watch.timer, 0o644),
    }


def request_of(files: dict[str, tuple[str, int]]) -> ObservationRequest:
    """What has to be observed of the watch."""
    return ObservationRequest(files=tuple(files), units=(TIMER,) if files else ())
