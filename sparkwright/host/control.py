"""Starts, stops or restarts this host's services by request. Runs on the host as root.

Behind a proxy a service leaves its pool and is drained before it stops. A stop is systemd's: it
lasts until somebody starts the service again, by a boot or a deploy too; stopped.json says who.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import exclusive, files, homes, systemd
from sparkwright.host.lib.homes import Stopped
from sparkwright.host.lib.threads import at_once
from sparkwright.host.proxy.place import Place
from sparkwright.host.proxy.pool import Pool, Sockets
from sparkwright.host.service import current
from sparkwright.host.smoke import check

START, STOP, RESTART = "start", "stop", "restart"


@dataclass(frozen=True)
class ControlRequest:
    """What is done to which services.

    Attributes:
        action: start, stop or restart.
        sockets: HAProxy's.
        services: names, those among them that are here; None for every one.
        now: whether running requests are cut off, and a switch that is under way is ended.
        keep: whether what is stopped stays so over a boot.
        wait: whether what is started must answer.
        notice_seconds: until load balancers in front have seen that a service leaves.
        drain_seconds: at most, until running requests have ended.
    """

    action: str
    sockets: Sockets
    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    now: bool = False
    keep: bool = False
    wait: bool = True
    notice_seconds: float = 7.0
    drain_seconds: float = 600.0


@dataclass(frozen=True)
class ControlAnswer:
    """What was done.

    Attributes:
        known: every service of the host.
        done: service -> what was done, in words.
        wrong: what went wrong, as lines.
    """

    known: tuple[str, ...]
    done: dict[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()


SWITCH = "sparkwright-switch.service"
_SWITCHING = (
    "a switch to another release is under way and would start it again: wait for its end, or end "
    "it too (--now)"
)
_SLEEPS = "{0}: it sleeps while {1} runs: sparkwright activate {0} exchanges them"


class Control:
    """One request on some services."""

    def __init__(self, request: ControlRequest, services: dict[str, Path]) -> None:
        self._request = request
        self._services = services
        self._units = [homes.unit(name) for name in services]
        self.done: dict[str, str] = {}
        self.wrong: list[str] = []

    def stop(self) -> None:
        """Drain them, and stop them: also what systemd would start again in some seconds."""
        places = {name: self._place(name) for name in self._services}
        if not self._request.now:
            at_once(Place.leave, [places[name] for name in self._services if _runs(name)])
        if self._units:
            systemd.systemctl("stop", *self._units)
        at_once(Place.shut, places.values())
        for name in self._services:
            unit = systemd.unit(homes.unit(name))
            state = unit.get("ActiveState", "unknown")
            if state in systemd.RUNNING or state == "unknown":
                self.wrong.append(f"{name}: it does not stop: systemd says {state}")
            else:
                self.done[name] = "stopped"

    def keep_stopped(self) -> None:
        """Say who stopped them, and have a boot leave them so where that is wanted."""
        request = self._request
        for name in self.done:
            if request.keep:
                systemd.want_at_boot(homes.unit(name), wanted=False)
            active = systemd.unit(homes.unit(name)).get("ActiveEnterTimestamp", "")
            mark = Stopped(request.by, round(time.time()), request.why, request.keep, active)
            try:
                files.write_record(self._services[name] / homes.STOPPED, mark)
            except OSError as error:  # a full disk: it is stopped all the same
                self.done[name] = f"stopped; who did can't be noted: {error.strerror}"

    def start(self) -> None:
        """Start them, at boot too, and have them answer."""
        if not self._units:
            return
        for name, home in self._services.items():
            systemd.want_at_boot(homes.unit(name), wanted=True)
            (home / homes.STOPPED).unlink(missing_ok=True)
        systemd.systemctl("reset-failed", *self._units)
        began = time.monotonic()
        done = systemd.systemctl("start", *self._units)
        if not done.ok:
            self.wrong.append(f"systemctl start: {done.said}")
            return
        for name in self._services:
            self.done[name] = "started"
        if self._request.wait:
            self._answers(began)

    def _place(self, name: str) -> Place:
        request = self._request
        return Place(Pool(name, request.sockets, request.notice_seconds, request.drain_seconds))

    def _answers(self, began: float) -> None:
        def answer(name: str) -> None:
            record = current(self._services[name])
            if record is None:
                return  # damaged, or of another version: nobody knows what it must answer
            gate = record.gate
            # Its port here: the proxy takes it back by itself, and is waited for.
            bad, journal = check.without_proxy(name, gate)
            self.wrong += [*bad, *(f"    journal: {line}" for line in journal if bad)]
            if not bad and not self._place(name).back():
                bad = [f"{name}: it answers, and its proxy does not take it back"]
                self.wrong += bad
            if not bad:
                self.done[name] = f"answers after {time.monotonic() - began:.0f} s"

        at_once(answer, self._services)


def _runs(name: str) -> bool:
    return systemd.is_active(homes.unit(name))


def end_switch(*, now: bool) -> str | None:
    """End a switch that is under way; why nothing is stopped beside it, without ``now``."""
    if systemd.unit(SWITCH).get("ActiveState") not in systemd.RUNNING:
        return None
    if not now:
        return _SWITCHING
    systemd.systemctl("stop", SWITCH)
    return None


def main(request: ControlRequest) -> ControlAnswer:
    """Do it. Of a name that is no service's nothing gets into a command."""
    every = homes.services(request.services_root)
    chosen = homes.chosen(request.services, every)
    if busy := end_switch(now=request.now):
        return ControlAnswer(tuple(every), wrong=(busy,))
    # What sleeps is not to run beside what does: another command exchanges them.
    asleep = exclusive.sleeping(Path(request.services_root, "state"))
    refused = [name for name in chosen if name in asleep and request.services is not None]
    if request.action != STOP and refused:
        reasons = tuple(_SLEEPS.format(name, asleep[name]) for name in refused)
        return ControlAnswer(tuple(every), wrong=reasons)
    chosen = {name: home for name, home in chosen.items() if name not in asleep}
    control = Control(request, chosen)
    if request.action != START:
        control.stop()
    if request.action == STOP:
        control.keep_stopped()
    else:
        control.start()
    return ControlAnswer(tuple(every), control.done, tuple(control.wrong))
