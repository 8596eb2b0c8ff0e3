"""Start, stop or restart this host's services on request. The program runs on the host as root.

A service behind a proxy leaves its pool and is drained before systemd stops it. The service stays
stopped until a user, a boot or a deploy starts it again; stopped.json names the user who stopped
it.
"""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from sparkwright.host import boot_phases, release, service
from sparkwright.host.lib import exclusive, files, homes, records, systemd, threads
from sparkwright.host.proxy import place
from sparkwright.host.smoke import check

START, STOP, RESTART = "start", "stop", "restart"
_DONE = {START: "started", STOP: "stopped", RESTART: "restarted"}


@records.dataclass(frozen=True)
class ControlRequest:
    """Request to start, stop or restart services.

    Attributes:
        action: start, stop or restart.
        services: names; names of other hosts' services are ignored; None for all services.
        now: whether to cut running requests off, and to end a switch that is under way.
        keep: whether stopped services stay stopped through boots.
        wait: whether to wait until started services answer.
        boot_lines: same as in a switch's request.
    """

    action: str
    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    now: bool = False
    keep: bool = False
    wait: bool = True
    boot_lines: dict[str, str] = records.field(default_factory=dict)


@records.dataclass(frozen=True)
class ControlAnswer:
    """Result of a control request.

    Attributes:
        service_names: names of all services of the host.
        done: service -> the action, as text.
        faults: failures, as lines.
    """

    service_names: tuple[str, ...]
    done: dict[str, str] = records.field(default_factory=dict)
    faults: tuple[str, ...] = ()


def progress(services_root: str) -> Path:
    """Return the path of the SwitchJournal in which a request records its progress."""
    return Path(services_root, "state/control/progress.json")


SWITCH = "sparkwright-switch.service"
_SWITCHING = (
    "a switch to another release is under way and would start the service: wait for its end, or "
    "end the switch, too (--now)"
)
_SLEEPS = "{0} sleeps while {1} runs: sparkwright activate {0} exchanges them"


class Control:
    """Execution of one control request on some services."""

    def __init__(self, request: ControlRequest, services: dict[str, Path]) -> None:
        self._request, self._services = request, services
        self._units = [homes.unit(name) for name in services]
        self._records = service.records(services)
        self._pools = {name: item.pool for name, item in self._records.items() if item.pool}
        self.done: dict[str, str] = {}
        self.faults: list[str] = []
        self._phases: dict[str, release.Phase] = {}

    def _note(self, step: str) -> None:
        """Record the present step, for users who wait for this request."""
        with suppress(OSError):  # a full disk
            journal = release.SwitchJournal(step=step, phases=dict(self._phases))
            path = progress(self._request.services_root)
            files.write_record(path, journal, 0o600, parents=0o750)

    def _show_boot(self, name: str, boot: boot_phases.BootPhases) -> None:
        if (phase := boot.now()) != self._phases.get(name):
            self._phases[name] = phase
            self._note("proving")

    def stop(self) -> None:
        """Drain and stop the services, including failed services that systemd would restart in some
        seconds.
        """
        if not self._request.now:
            self._note("draining")
            running = (name for name in self._pools if systemd.is_active(homes.unit(name)))
            threads.at_once(place.leave, [self._pools[name] for name in running])
        if self._units:
            systemd.systemctl("stop", *self._units)
        threads.at_once(place.shut, self._pools.values())
        for name in self._services:
            state = systemd.unit(homes.unit(name)).get("ActiveState", "unknown")
            if state in (*systemd.RUNNING, "unknown"):
                self.faults.append(f"{name} does not stop: its unit is {state}")
            else:
                self.done[name] = "stopped"

    def keep_stopped(self) -> None:
        """Record who stopped the services, and disable their start at boot if requested."""
        request = self._request
        for name in self.done:
            if request.keep:
                systemd.want_at_boot(homes.unit(name), wanted=False)
            active = systemd.unit(homes.unit(name)).get("ActiveEnterTimestamp", "")
            mark = homes.Stopped(request.by, round(time.time()), request.why, request.keep, active)
            try:
                files.write_record(self._services[name] / homes.STOPPED, mark)
            except OSError as error:  # the disk is full, but the service is stopped
                self.done[name] = f"stopped, but the stop can't be recorded: {error.strerror}"

    def start(self) -> None:
        """Start the services, now and at boot, and wait until they answer."""
        if not self._units:
            return
        for name, home in self._services.items():
            systemd.want_at_boot(homes.unit(name), wanted=True)
            (home / homes.STOPPED).unlink(missing_ok=True)
        systemd.systemctl("reset-failed", *self._units)
        self._note("starting")
        began = time.time()
        started = systemd.systemctl("start", *self._units)
        if not started.ok:
            self.faults.append(f"systemctl start: {started.message}")
            return
        self.done = dict.fromkeys(self._services, "started")
        if self._request.wait:
            threads.at_once(partial(self._answers, began), self._records)

    def _answers(self, began: float, name: str) -> None:
        # Wait until the proxy's health check has put the service back into its pool.
        service = self._records[name]
        boot = boot_phases.BootPhases(service, self._request.boot_lines, began)
        show = partial(self._show_boot, name, boot)
        failures, journal = check.without_proxy(name, service.gate, show)
        if failures:
            failures += [f"    journal: {line}" for line in journal]
        elif name in self._pools and not place.back(self._pools[name]):
            failures = [f"{name} answers, but its proxy sends it no requests"]
        else:
            boot.keep(time.time())
            self.done[name] = f"answers after {time.time() - began:.0f} s"
        self.faults += failures


def main(request: ControlRequest) -> ControlAnswer:
    """Carry out the request. Only names of existing services become part of a command."""
    every = homes.services(request.services_root)
    chosen = homes.chosen(request.services, every)
    if systemd.unit(SWITCH).get("ActiveState") in systemd.RUNNING:
        if not request.now:
            return ControlAnswer(tuple(every), faults=(_SWITCHING,))
        systemd.systemctl("stop", SWITCH)
    # A sleeping service must not run beside the active service: another command exchanges them.
    asleep = exclusive.sleeping(Path(request.services_root, "state"))
    refused = [name for name in chosen if name in asleep and request.services is not None]
    if request.action != STOP and refused:
        reasons = tuple(_SLEEPS.format(name, asleep[name]) for name in refused)
        return ControlAnswer(tuple(every), faults=reasons)
    resting = [homes.unit(name) for name in chosen if name in asleep]
    if request.action != START and (running := [*filter(systemd.is_active, resting)]):
        systemd.systemctl("stop", *running)  # a sleeping engine holds some memory
    chosen = {name: home for name, home in chosen.items() if name not in asleep}
    control = Control(request, chosen)
    try:
        if request.action != START:
            control.stop()
        if request.action == STOP:
            control.keep_stopped()
        else:
            control.start()
    finally:
        progress(request.services_root).unlink(missing_ok=True)
    now, done = time.time(), _DONE[request.action]
    actions = (homes.Action(now, request.by, done, name, request.why) for name in control.done)
    homes.note(Path(request.services_root, homes.ACTIONS), actions)
    return ControlAnswer(tuple(every), control.done, tuple(control.faults))
