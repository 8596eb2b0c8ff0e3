"""Switch this host's services to other releases, prove them, or roll back, as one transaction.

``main(["--run", REQUEST])`` runs as a systemd job, which needs neither the controller nor the
connection after its start. ``main(["--settle", REQUEST])`` runs at boot before the services
(`sparkwright-recover.service`): after a power cut, the journal has the last step, so the unit and
`current` are made to agree on one release, and the job continues from this step. In the end the new
release runs and has given real answers, or the former release runs.

The program uses the standard library only; its own modules are beside it on the host, under the
same names.

The journal is progress.json beside the request; its result is null until the end. The history has
one line for each service in ../history.jsonl. A release keeps its unit and its smoke test
(release.json) beside its Compose file, so a rollback needs nothing from the controller.
"""

import contextlib
import re
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sparkwright.host import boot_phases, second_boot
from sparkwright.host.exclusive import room
from sparkwright.host.lib import docker, documents, exclusive, files, homes, journal, nap, systemd
from sparkwright.host.lib.http import Server
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import decode
from sparkwright.host.lib.waiting import remaining
from sparkwright.host.proxy import configure, place, pool
from sparkwright.host.release import (
    FAILED,
    GOOD,
    REVERTED,
    HistoryEntry,
    Phase,
    ServiceSwitch,
    SwitchJournal,
    SwitchRequest,
)
from sparkwright.host.service import CheckResult, SmokeRequest, kept
from sparkwright.host.smoke import check

#: Seconds between two requests to a release under watch.
_ASK_EVERY = 10
#: Longest time for systemd to restart a unit, in seconds: RestartSec and some more.
_RESTARTED = 30
#: Seconds in which HAProxy passes an accepted request to a server.
_ASSIGNED = 1.0
#: Number of journal lines to search for the cause of a crash.
_LINES = 400
_write = partial(files.write, parents=0o750)


class Switch:
    """Switch of services, as one transaction."""

    def __init__(self, folder: Path, request: SwitchRequest) -> None:
        self._folder = folder
        self._request = request
        self._services = request.services
        self._restarting = [switch for switch in self._services if switch.restart]
        #: Services that run afterwards; the other services are only stopped, and sleep.
        self._waking = [switch for switch in self._restarting if not switch.sleeps]
        self._unmanaged = request.unmanaged
        self._soak_seconds = max(map(_soak_seconds, self._waking), default=0.0)
        #: Time when the former releases were stopped; None if no release served.
        self._stopped: float | None = None
        self._down = 0.0
        self._checks: dict[str, tuple[CheckResult, ...]] = {}
        #: Time when the services were started last, and the phase of each service since then.
        self._started = time.time()
        self._phases: dict[str, Phase] = {}
        self._noted: tuple[str, tuple[str, ...]] = ("", ())
        #: Names of services whose engine woke up without a new start.
        self._woken: set[str] = set()

    @property
    def _back(self) -> list[ServiceSwitch]:
        """Return the services that ran before, and can be rolled back."""
        return [switch for switch in self._restarting if switch.from_release and not switch.slept]

    @property
    def _new(self) -> list[ServiceSwitch]:
        """Return the services that did not run before, because they are new here or slept."""
        return [switch for switch in self._waking if switch.slept or not switch.from_release]

    def run(self) -> str:
        """Carry out the switch, or continue it after an interruption. Returns the result."""
        journal = self._journal()
        step = journal.step if journal else None
        if journal and step == "ended":
            return str(journal.result)
        if step in ("starting", "proving"):
            # Unit and `current` belong to the new release: after a power cut systemd has started
            # the new release.
            problems = self._open_proxies("to")
            if any(map(_asleep, self._waking)):
                self._start(self._waking)
            return self._revert(problems) if problems else self._prove()
        if step is not None and (self._back or self._unmanaged):
            return self._revert(["the switch was interrupted"])
        self._note("writing")
        problems = self._lacking()
        if problems:
            return self._end(FAILED, problems, touched=False)
        stops = [switch.name for switch in self._restarting if switch.sleeps]
        slept = [switch.name for switch in self._waking if switch.slept]
        if lacking := room.lacking(self._folder.parent, slept, stops):
            return self._end(REVERTED, [lacking], touched=False)
        self._write_recovery()
        self._remember()
        for switch in self._services:
            self._write_release(switch)
        self._note("draining")
        if exclusive.NOBODY not in self._request.activates.values():
            self._each_proxy(place.leave, [item for item in self._restarting if not item.slept])
        elif not self._unasked():
            self._lay_asleep("from")
            return self._end(REVERTED, ["a request arrived"], touched=False)
        self._note("stopping")
        served = bool(self._unmanaged) or any(_running(item) for item in self._restarting)
        self._stopped = time.monotonic() if served else None
        before = None if self._waking else room.measured()
        self._stop(self._restarting)
        if before is not None:
            given = (room.measured() or before) - before
            print(f"{given:.1f} GiB of memory are free again", flush=True)
        self._set_unmanaged(running=False)
        self._note("switching")
        self._switch("to")
        self._note("starting")
        problems = self._open_proxies("to")
        if problems:
            return self._revert(problems)
        self._start([service for service in self._services if not service.sleeps])
        return self._prove()

    def rescue(self) -> str:
        """Handle an unexpected error: start the former releases as far as possible. Returns the
        result.
        """
        reasons = ["the switch itself failed: see journalctl -u sparkwright-switch"]
        awake = [switch for switch in self._services if not switch.slept]
        steps: list[Callable[[], Any]] = [
            lambda: self._switch("from"),
            lambda: self._open_proxies("from"),
            lambda: self._start(self._back or awake),
            lambda: self._set_unmanaged(running=True),
            lambda: self._each_proxy(place.admit),
            lambda: self._end(FAILED, reasons),
        ]
        for step in steps:
            with contextlib.suppress(Exception):
                step()
        return FAILED

    def settle(self) -> bool:
        """Make the unit and ``current`` agree on one release at boot. Returns whether any work is
        left.
        """
        journal = self._journal()
        if journal is None or journal.step == "ended":
            return False
        if journal.step not in ("starting", "proving"):
            self._switch("from" if self._back else "to")
        return True

    def _journal(self) -> SwitchJournal | None:
        """Return the progress of this request; None if the switch has not begun."""
        journal = documents.record(SwitchJournal, self._folder / "progress.json")
        return journal if journal and journal.id == self._request.id else None

    # Steps

    def _lacking(self) -> list[str]:
        """Return requirements of the new releases that the host does not meet. The switch runs this
        check before anything stops.
        """
        runs = exclusive.running(self._folder.parent)
        problems = [
            f"{group}: {runs[group]} was activated meanwhile: run the command again"
            for group, expected in self._request.active.items()
            if runs.get(group, expected) not in (expected, self._request.activates.get(group))
        ]
        for switch in self._restarting:
            unit = _release(switch, switch.to) / "unit.service"
            if not switch.files and not unit.is_file():
                problems.append(f"{switch.name}: release {switch.to} no longer exists")
            elif not docker.image(image := switch.service.image, timeout=None):
                problems.append(f"{switch.name}: the image {image} is not on the host any more")
            for name, path in ({} if switch.sleeps else switch.service.tokens).items():
                if path not in switch.files and not Path(path).exists():
                    problems.append(
                        f"{switch.name}: release {switch.to} reads the secret {name}, which is not "
                        "on the host any more: name it in the service's secrets, and deploy again"
                    )
        return problems

    def _write_recovery(self) -> None:
        """Install the unit that completes an interrupted switch at boot."""
        unit = systemd.UNITS / "sparkwright-recover.service"
        systemd.write_files({str(unit): (self._request.recover, 0o644)})
        systemd.enable(unit.name)

    def _remember(self) -> None:
        """Save keys and proxies once for a rollback, even if the switch starts again."""
        if not self._before():
            secrets = [path for switch in self._services for path in switch.service.secret_files]
            managed = self._request.proxies.managed if self._request.proxies else ()
            kept: dict[str, Any] = {path: _kept(Path(path)) for path in (*secrets, *managed)}
            kept["id"] = self._request.id
            files.write_record(self._folder / "before.json", kept, 0o600, parents=0o750)

    def _before(self) -> dict[str, Any]:
        before = documents.read(self._folder / "before.json") or {}
        return before if before.get("id") == self._request.id else {}

    def _open_proxies(self, which: str) -> list[str]:
        """Set up the new plan's proxies or the former proxies. Returns the faults."""
        proxies = self._request.proxies
        if not proxies:
            return []
        request = replace(proxies, start=True)
        if which == "from":
            if not (before := self._before()):
                return []  # nothing has changed yet
            texts = {path: (*before[path],) for path in proxies.managed if before.get(path)}
            request = replace(request, files=texts)
        try:
            configure.main(request)
        except (SystemExit, OSError) as error:
            return [f"proxy: {error}"]
        return []

    def _write_release(self, switch: ServiceSwitch) -> None:
        """Write the complete new release; the running release stays untouched."""
        # Write the record last: it completes the release.
        own = switch.service.files if switch.files else {}
        for path, (text, mode) in {**switch.files, **own}.items():
            if path not in switch.service.secret_files:
                _write(Path(path), text, mode)

    def _switch(self, which: str) -> None:
        """Point the unit and ``current`` at the new or the former release."""
        units: dict[str, tuple[str, int]] = {}
        for switch in self._services:
            release = switch.to if which == "to" else switch.from_release
            if release is None:
                continue
            if switch.service.follower:
                release = files.target(Path(switch.service.home, "current")) or release
            texts = self._before() if which == "from" else switch.files
            for path in switch.service.secret_files:
                if secret := texts.get(path):
                    _write(Path(path), *secret)
            unit = _release(switch, release) / "unit.service"
            if unit.is_file():  # a power cut may have prevented the write
                units[switch.service.unit_path] = (unit.read_text(), 0o644)
            files.point(Path(switch.service.home, "current"), f"releases/{release}")
        systemd.write_files(units)
        self._lay_asleep(which)

    def _lay_asleep(self, which: str) -> None:
        """Stop the sleeping members of groups, disable them at boot, and record the active
        members.
        """
        request = self._request
        chosen = request.activates if which == "to" else request.active
        groups = {group: chosen[group] for group in request.activates if group in chosen}
        exclusive.activate(self._folder.parent, groups, request.by, "")
        place.tell_sleeping(self._folder.parent)
        to = which == "to"
        resting = [item for item in self._services if (item.sleeps if to else item.slept)]
        for switch in self._services:
            exclusive.mark(Path(switch.service.home), switch.service.unit, asleep=switch in resting)
        self._stop(resting)

    def _unasked(self) -> bool:
        """Make requests wait in the waking program. Returns whether all earlier requests have
        ended.
        """
        self._each_proxy(place.announce)
        exclusive.activate(self._folder.parent, self._request.activates, self._request.by, "")
        place.tell_sleeping(self._folder.parent)
        time.sleep(_ASSIGNED)
        pools = (switch.service.pool for switch in self._restarting)
        return not any(place.in_flight(pool) for pool in pools if pool)

    def _stop(self, services: Iterable[ServiceSwitch]) -> None:
        """Stop all services before any service starts, so that two services can exchange their
        ports.

        An idle service whose engine sleeps keeps its unit.
        """
        if units := [switch.service.unit for switch in services if not self._rests(switch)]:
            systemd.systemctl("stop", *units)

    def _rests(self, switch: ServiceSwitch) -> bool:
        """Return whether a service's engine sleeps, so that its unit keeps running.

        This function makes the engine of an idle service sleep; ``_start`` wakes the engine.
        """
        idle = switch.sleeps and exclusive.NOBODY in self._request.activates.values()
        if idle and switch.service.nap and _running(switch) == switch.to:
            return nap.enter(_engine(switch), switch.service.nap)
        return switch.slept and _asleep(switch)

    def _start(self, services: Sequence[ServiceSwitch]) -> None:
        self._started, self._phases = time.time(), {}
        items = [(switch.service, switch.restart) for switch in services]
        systemd.enable(*(service.unit for service, _ in items))
        for switch in filter(_asleep, services):
            if switch.service.nap and nap.leave(_engine(switch), switch.service.nap):
                self._woken.add(switch.name)
            else:
                systemd.systemctl("stop", switch.service.unit)
        # A running follower continues: only its head ends a follower.
        if units := [service.unit for service, restart in items if restart or service.follower]:
            systemd.systemctl("reset-failed", *units)
            systemd.systemctl("start", *units)

    def _prove(self) -> str:
        self._note("proving")
        reasons = self._gate(self._waking, "to")
        if not reasons:
            return self._end(GOOD, [])
        if not self._back and not self._unmanaged:
            # No release ran here before: the new release stays for an inspection.
            return self._end(FAILED, reasons)
        return self._revert(reasons)

    def _revert(self, reasons: list[str]) -> str:
        """Restore and prove the former releases. The new release stays on the disk or is
        removed.
        """
        self._note("reverting", reasons)
        back = self._back
        self._stop([item for item in back if _running(item) != item.from_release])
        if self._unmanaged and self._new:
            systemd.disable(*(switch.service.unit for switch in self._new))
        self._switch("from")
        problems = self._open_proxies("from")
        self._start(back)
        problems += self._set_unmanaged(running=True)
        problems += self._gate(back, "from")
        if problems:
            return self._end(FAILED, [*reasons, *(f"rollback: {item}" for item in problems)])
        return self._end(REVERTED, reasons)

    def _gate(self, services: list[ServiceSwitch], which: str) -> list[str]:
        """Run the smoke test of every started service. Returns the faults."""
        problems = self._answers(services, which)
        if not problems and which == "to":
            problems = self._second_boot(services)
        if problems:
            return problems
        # If other hosts serve, clients use this release only after it has run for a minute.
        pools = [switch.service.pool for switch in services]
        closed = which == "to" and any(pool.others for pool in pools if pool)
        before = {item.name: _container(item) for item in self._waking}
        if closed and (problems := self._soak(before)):
            return problems
        self._each_proxy(place.admit)
        # Clients use the proxy, so an answer at the service's own port is not enough.
        problems = check.proxy_faults({item.name: _gate(item, which) for item in services})
        if which == "from":
            return problems
        problems = (problems and self._died(before)) or problems
        return problems if problems or closed else self._soak(before)

    def _answers(self, services: list[ServiceSwitch], which: str) -> list[str]:
        problems = self._asked(services, which)
        if problems and (woken := [item for item in services if item.name in self._woken]):
            # An engine that gives wrong answers after its sleep loads its weights again.
            self._woken.clear()
            systemd.systemctl("stop", *(item.service.unit for item in woken))
            self._start(woken)
            problems = self._asked(services, which)
        units = [item.service.unit for item in services if problems]
        if any(systemd.systemctl("is-active", unit).out.strip() == "inactive" for unit in units):
            # Another program, such as Docker at a restart, stopped the service: the release did not
            # fail.
            self._start(services)
            problems = self._asked(services, which)
        lasting = which == "to" and problems and any(map(self._lasting, services))
        if problems and not lasting and any(map(_without_cache, services)):
            # The release's compiled code was set aside; only the next start, without this cache,
            # counts.
            problems = self._asked(services, which)
        return problems

    def _second_boot(self, services: list[ServiceSwitch]) -> list[str]:
        """Restart services that compiled code, before clients come, if the compilation costs KV
        cache.
        """
        started = [switch for switch in services if switch.name not in self._woken]
        compiled = [switch for switch in started if second_boot.due(switch.service)]
        if not compiled:
            return []
        began = time.monotonic()
        before = {item.name: second_boot.kv_blocks(_gate(item, "to")) for item in compiled}
        self._stop(compiled)
        self._start(compiled)
        problems = self._answers(compiled, "to")
        for entry in [] if problems else compiled:
            text = second_boot.outcome(
                before[entry.name], second_boot.kv_blocks(_gate(entry, "to"))
            )
            seconds = time.monotonic() - began
            checks = (*self._checks[entry.name], CheckResult("kv-cache", True, seconds, text))
            self._checks[entry.name] = checks
        return problems

    def _asked(self, services: list[ServiceSwitch], which: str) -> list[str]:
        problems = []
        for switch in services:
            began = time.monotonic()
            boot = boot_phases.BootPhases(switch.service, self._request.boot_lines, self._started)
            show = partial(self._show_boot, switch.name, boot)
            lasting = partial(self._lasting, switch) if which == "to" else str
            answer = check.run(replace(_gate(switch, which), proxy=None), show, lasting)
            if not answer.failures(switch.name) and switch.name not in self._woken:
                boot.keep(time.time())
            self._checks[switch.name] = answer.checks
            health = answer.checks[0]
            if self._stopped is not None and health.ok:
                self._down = max(self._down, began - self._stopped + health.seconds)
            problems += _bad(switch, answer)
        return problems

    def _output(self, switch: ServiceSwitch) -> list[str]:
        """Return the last lines that a service has printed since its start."""
        return journal.last(switch.service.unit, _LINES, since=f"@{int(self._started)}")

    def _lasting(self, switch: ServiceSwitch) -> str:
        """Return why the service ended since its start, if no restart fixes the cause; empty
        otherwise.
        """
        lines = self._output(switch)
        for pattern, cause in self._request.lasting.items():
            if any(re.search(pattern, line) for line in lines):
                return f"; a restart does not fix it: {cause}"
        return ""

    def _died(self, before: dict[str, str]) -> list[str]:
        """Return the log lines of the first service with a changed or ended container; empty if all
        containers still run.
        """
        for switch in self._waking:
            if _container(switch) != before[switch.name]:
                lines = self._output(switch)
                died = f"{switch.name}: the service died within {self._soak_seconds:.0f} s of use"
                cause = journal.cause(lines)
                return [f"{died}: {cause}" if cause else died, *_of_journal(lines[-6:])]
        return []

    def _soak(self, before: dict[str, str]) -> list[str]:
        """Watch the services for a while with occasional requests: some releases die after a
        minute.

        Args:
            before: ids of the containers that passed the smoke test, by service.
        """
        until = time.monotonic() + self._soak_seconds
        looked = time.monotonic()
        self._phases = {"": Phase("watching", time.time(), self._soak_seconds)}
        self._note(*self._noted)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            if problems := self._died(before):
                return problems
            if time.monotonic() - looked > _ASK_EVERY or left <= 1.0:
                for switch in self._waking:
                    gate = replace(_gate(switch, "to"), warm_ups=0, boot_seconds=5, proxy=None)
                    if problems := _bad(switch, check.run(gate)):
                        return problems
                looked = time.monotonic()
        return []

    def _each_proxy(
        self, action: Callable[[pool.Pool], None], services: Iterable[ServiceSwitch] | None = None
    ) -> None:
        for switch in self._restarting if services is None else services:
            if switch.service.pool:
                action(switch.service.pool)

    def _set_unmanaged(self, *, running: bool) -> list[str]:
        """Stop unmanaged containers that served here before, or start them again to revert.

        A stopped container loses its restart policy, so that a boot does not start both the
        container and the service; the history keeps the policy.
        """
        problems = []
        for item in self._unmanaged:
            name, _, policy = item.partition(" ")
            if not running:
                docker.docker("update", "--restart=no", name)
                docker.docker("stop", "--time", "60", name)
                continue
            docker.docker("update", f"--restart={policy or 'no'}", name)
            docker.docker("start", name)
            if not _running_id(name):
                problems.append(f"the container {name} does not start again")
        return problems

    # Records

    def _show_boot(self, name: str, boot: boot_phases.BootPhases) -> None:
        """Record the phase of a service's boot, if it has changed."""
        if (phase := boot.now()) != self._phases.get(name):
            self._phases[name] = phase
            self._note(*self._noted)

    def _note(self, step: str, reasons: Iterable[str] = (), result: str | None = None) -> None:
        down, path = round(self._down, 3), self._folder / "progress.json"
        if step != self._noted[0]:
            self._phases = {}
        self._noted = step, tuple(reasons)
        now = SwitchJournal(
            self._request.id, step, result, self._noted[1], down, self._checks, self._phases
        )
        try:
            files.write_record(path, now, 0o600, parents=0o750)
        except OSError:
            # Before the first stop, a full disk is a reason to change nothing; later a full disk
            # must not keep a service from starting.
            if step in ("writing", "draining", "stopping"):
                raise
        # Tests stop a switch here, to inject a fault at each step.
        while (self._folder / f"hold-{step}").exists():
            time.sleep(0.05)

    def _end(self, result: str, reasons: list[str], *, touched: bool = True) -> str:
        entries = [
            HistoryEntry(
                service=switch.name,
                from_release=switch.from_release,
                to=switch.to,
                by=self._request.by,
                at=round(time.time()),
                why=switch.why,
                down_seconds=round(self._down, 1) if switch.restart else 0.0,
                result=result,
                reasons=tuple(reasons[:3]),
                unmanaged=self._unmanaged,
            )
            for switch in self._services
        ]
        self._each_proxy(place.admit)
        for switch in self._services:
            release = switch.to if result == GOOD else switch.from_release
            asleep = switch.sleeps if result == GOOD else switch.slept
            if touched and result != FAILED and release and not (asleep or switch.service.follower):
                files.point(Path(switch.service.home, "good"), f"releases/{release}")
            if result == GOOD:
                _forget_secrets(switch)
        homes.note(self._folder.parent / "history.jsonl", entries)
        self._note("ended", reasons, result)
        # The request has keys, and a finished switch needs no files.
        done = replace(
            self._request,
            services=tuple(replace(service, files={}) for service in self._services),
            proxies=None,
        )
        with contextlib.suppress(OSError):
            files.write_record(self._folder / "request.json", done, 0o600, parents=0o750)
            (self._folder / "before.json").unlink(missing_ok=True)
        return result


def _kept(path: Path) -> list[Any] | None:
    """Return the text and the mode of a file; None if the file is missing."""
    try:
        return [path.read_text(), path.stat().st_mode & 0o777]
    except OSError:
        return None


def _forget_secrets(switch: ServiceSwitch) -> None:
    """Remove secrets that neither the new release nor the former release reads."""
    home = Path(switch.service.home)
    before = kept(home, switch.from_release or "none")
    named = {*switch.service.secret_names, *(before.secret_names if before else ())}
    with contextlib.suppress(OSError):
        for path in (home / "secrets").iterdir():
            if path.name not in named:
                path.unlink()


def _release(switch: ServiceSwitch, release: str) -> Path:
    """Return the directory of a release's files."""
    return Path(switch.service.home, "releases", release)


def _gate(switch: ServiceSwitch, which: str) -> SmokeRequest:
    """Return the smoke test of a release: another release may have other names or another port."""
    if which == "to":
        # If a rollback is possible, one crash is a failure; otherwise wait for systemd's three
        # tries.
        return replace(switch.service.gate, fail_fast=switch.has_way_back)
    before = kept(Path(switch.service.home), switch.from_release or "none")
    return replace((before or switch.service).gate, fail_fast=False)


def _soak_seconds(switch: ServiceSwitch) -> float:
    """Return how long to watch a release after its first answers: 0 for a release that was proved
    here before, or without a predecessor.
    """
    proved = switch.slept and files.target(Path(switch.service.home, "good")) == switch.to
    return switch.service.soak_seconds if switch.has_way_back and not proved else 0.0


def _bad(switch: ServiceSwitch, answer: check.SmokeAnswer) -> list[str]:
    problems = answer.failures(switch.name)
    return [*problems, *(_of_journal(answer.journal[-6:]) if problems else [])]


def _of_journal(lines: Iterable[str]) -> list[str]:
    return [f"journal: {line}" for line in lines]


def _without_cache(switch: ServiceSwitch) -> bool:
    """Wait for the next start after a start that set its cache aside; return False if no cache was
    set aside.
    """
    if not any(Path(switch.service.home, "caches").glob("*.suspect")):
        return False

    def waits() -> bool:
        return systemd.unit(switch.service.unit).get("SubState") == "auto-restart"

    return not remaining(waits, _RESTARTED, 0.3)


def _container(switch: ServiceSwitch) -> str:
    return _running_id(f"sparkwright-{switch.name}")


def _running_id(container: str) -> str:
    """Return the id of a container if it runs; empty otherwise."""
    seen = docker.container(container, timeout=None)
    return str(seen["Id"]) if seen and seen["State"]["Running"] else ""


def _engine(switch: ServiceSwitch) -> Server:
    """Return the engine's own server. The server's routes for sleep need no API key."""
    return Server(switch.service.gate.address, switch.service.gate.port)


def _asleep(switch: ServiceSwitch) -> bool:
    """Return whether the engine of the planned release sleeps."""
    if (own := switch.service.nap) is None or _running(switch) != switch.to:
        return False
    return nap.sleeps(_engine(switch), own.state) is True


def _running(switch: ServiceSwitch) -> str | None:
    """Return the release whose container runs, or None."""
    return docker.running_release(switch.name, timeout=None)


def main(arguments: list[str]) -> int:
    """Run or settle the request. Returns the exit code: 0 good, 3 reverted, 4 failed."""
    path = Path(arguments[-1])
    if (document := documents.read(path)) is None:
        return 0  # no switch has begun
    request = decode(SwitchRequest, document)
    switch = Switch(path.parent, request)
    if arguments[0] == "--settle":
        if switch.settle():
            run(*request.settle)
        return 0
    try:
        result = switch.run()
    except Exception:
        traceback.print_exc()
        result = switch.rescue()
    return {GOOD: 0, REVERTED: 3}.get(result, 4)
