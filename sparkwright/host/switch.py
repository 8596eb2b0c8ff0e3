"""Switches this host's services to other releases, proves them, or goes back: as one transaction.

``main(["--run", REQUEST])`` runs as a job of systemd's, so that neither the controller nor the
connection is needed once it began. ``main(["--settle", REQUEST])`` runs at boot before the services
(`sparkwright-recover.service`): a power cut came between, the journal says how far it was, so unit
and `current` are made to be one release's again, and the job goes on from there. What runs at the
end is the new release, proved by real answers, or the one before it.

Standard library only; what it imports lies beside it on the host, under the same names.

Request: {"id", "by", "settle": argv of the job, "recover": text of the unit, "services": [{"name",
"home", "unit", "unit_path", "to", "from": release to go back to or null, "files": {path: [text,
mode]}, "image", "secrets", "why": [words], "restart": bool, "gate": what check.py reads,
"soak_seconds", "door": see Door, or null}], "strangers": ["name restart-policy" of containers to
take over], "doors": null or {"to": what doors.py is to make, "managed": paths that doors may have,
"health": unit, "health_path"}}.

Journal, beside the request: progress.json {"id", "step", "result", "reasons", "down_seconds",
"checks"}; steps in order are STEPS; "result" is null until the end, then good, reverted, or failed.
History: one line a service in ../history.jsonl. A release keeps its unit and its gate
(release.json) beside its compose file, so that a way back needs nothing from outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sparkwright.host.lib import files
from sparkwright.host.proxy import configure as doors
from sparkwright.host.proxy import runtime_api as haproxy
from sparkwright.host.smoke import check

STEPS = (
    *("writing", "draining", "stopping", "switching", "starting"),
    *("proving", "reverting", "ended"),
)
GOOD, REVERTED, FAILED = "good", "reverted", "failed"
_UNITS = Path("/etc/systemd/system")
_WANTS = _UNITS / "multi-user.target.wants"
#: Seconds between two questions to a release that is looked on.
_ASK_EVERY = 10
_CUT = "cut off in the middle"
_write = partial(files.write, parents=0o750)


def command(*words: str) -> str:
    """What a command prints; nothing when it fails."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


class Door:
    """The host's own proxy in front of a service: how to leave and come back without a cut.

    Request: {"admin": socket of the worker, "master": socket of the master, "leave": [commands],
    "close": [commands], "open": [commands], "server": [backend, server], "notice_seconds": until
    those in front have seen it, "drain_seconds": at most, "others": whether other hosts serve the
    same}.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request

    def leave(self) -> None:
        """Say that nothing new is wanted, and see what runs to its end."""
        self._say("leave")
        time.sleep(float(self._request["notice_seconds"]))
        self._say("close")
        until = time.monotonic() + float(self._request["drain_seconds"])
        while self._busy() and time.monotonic() < until:
            time.sleep(0.1)

    def open(self) -> None:
        """Take requests again."""
        self._say("open")

    def _say(self, what: str) -> None:
        for line in self._request[what]:
            with contextlib.suppress(OSError):
                haproxy.ask(self._request["admin"], line)

    def _busy(self) -> int:
        try:
            return haproxy.busy(self._request["master"], *self._request["server"])
        except (OSError, ValueError, KeyError):
            return 0  # no door, nobody behind it


class Switch:
    """One transaction."""

    def __init__(self, place: Path, request: dict[str, Any]) -> None:
        self._place = place
        self._request = request
        self._services: list[dict[str, Any]] = request["services"]
        self._restarting = [service for service in self._services if service["restart"]]
        self._strangers: list[str] = request.get("strangers", [])
        self._down = 0.0
        self._checks: dict[str, Any] = {}

    @property
    def _back(self) -> list[dict[str, Any]]:
        """Services that ran before, and so can go back."""
        return [service for service in self._restarting if service["from"]]

    @property
    def _new(self) -> list[dict[str, Any]]:
        """Services that run here for the first time."""
        return [service for service in self._restarting if not service["from"]]

    def run(self) -> str:
        """Do it, or go on with it after a cut. Returns the result."""
        step = self.step()
        if step == "ended":
            return str(self._journal()["result"])
        if step in ("starting", "proving"):
            # Unit and `current` are the new release's: after a power cut systemd has started it.
            wrong = self._open_doors("to")
            return self._revert(wrong) if wrong else self._prove()
        if step is not None and (self._back or self._strangers):
            return self._revert([_CUT])
        self._note("writing")
        wrong = self._lacking()
        if wrong:
            return self._end(FAILED, wrong, touched=False)
        self._write_recovery()
        self._remember()
        for service in self._services:
            self._write_release(service)
        self._note("draining")
        self._each_door(Door.leave)
        self._note("stopping")
        served = bool(self._strangers) or any(_running(one) for one in self._restarting)
        stopped = time.monotonic() if served else None
        self._stop(self._restarting)
        self._set_strangers(running=False)
        self._note("switching")
        self._switch("to")
        self._note("starting")
        wrong = self._open_doors("to")
        if wrong:
            return self._revert(wrong, stopped)
        self._start(self._services)
        return self._prove(stopped)

    def rescue(self) -> str:
        """Something that nobody foresaw: have what ran before run, as far as it goes."""
        reasons = ["the switch itself failed: see journalctl -u sparkwright-switch"]
        steps: list[Callable[[], Any]] = [
            lambda: self._switch("from"),
            lambda: self._open_doors("from"),
            lambda: self._start(self._back or self._services),
            lambda: self._set_strangers(running=True),
            lambda: self._each_door(Door.open),
            lambda: self._end(FAILED, reasons),
        ]
        for step in steps:
            with contextlib.suppress(Exception):
                step()
        return FAILED

    def settle(self) -> bool:
        """At boot: have unit and ``current`` be one release's. Returns whether work is left."""
        step = self.step()
        if step in (None, "ended"):
            return False
        if step not in ("starting", "proving"):
            self._switch("from" if self._back else "to")
        return True

    def step(self) -> str | None:
        """How far this request is; None where it has not begun."""
        known = self._journal()
        return str(known["step"]) if known.get("id") == self._request["id"] else None

    # Steps

    def _lacking(self) -> list[str]:
        """What the new releases need and the host has not: seen before anything stops."""
        wrong = []
        for service in self._restarting:
            name, release = service["name"], Path(service["home"], "releases", service["to"])
            if not service["files"] and not (release / "unit.service").is_file():
                wrong.append(f"{name}: release {service['to']} is not there any more")
                continue
            image = service["image"] or json.loads((release / "release.json").read_text())["image"]
            if not command("docker", "image", "inspect", "-f", "{{.Id}}", image):
                wrong.append(f"{name}: the image {image} is not on the host any more")
        return wrong

    def _write_recovery(self) -> None:
        """At boot, a switch that a power cut came into is brought to its end."""
        unit = _UNITS / "sparkwright-recover.service"
        changed = _write(unit, self._request["recover"], 0o644)
        if changed:
            command("systemctl", "daemon-reload")
        if changed or not (_WANTS / unit.name).is_symlink():
            command("systemctl", "enable", "--quiet", unit.name)

    def _remember(self) -> None:
        """Keys and doors as they are, for the way back; once, also when this begins again."""
        if not self._before():
            secrets = [service["secrets"] for service in self._services]
            managed = (self._request.get("doors") or {}).get("managed", [])
            kept: dict[str, Any] = {path: _kept(Path(path)) for path in (*secrets, *managed)}
            kept["id"] = self._request["id"]
            _write(self._place / "before.json", json.dumps(kept), 0o600)

    def _before(self) -> dict[str, Any]:
        try:
            known = dict(json.loads((self._place / "before.json").read_text()))
        except (OSError, ValueError):
            return {}
        return known if known.get("id") == self._request["id"] else {}

    def _open_doors(self, which: str) -> list[str]:
        """Have the doors of the new plan, or those of before. Returns what is wrong."""
        wanted = self._request.get("doors")
        if not wanted:
            return []
        request = dict(wanted["to"])
        if which == "from":
            before = self._before()
            if not before:
                return []  # nothing was changed yet
            request["files"] = {
                path: before[path] for path in wanted["managed"] if before.get(path)
            }
            request["health"] = wanted["health"] if before.get(wanted["health_path"]) else None
        try:
            doors.main({**request, "start": True})
        except (SystemExit, OSError) as error:
            return [f"door: {error}"]
        return []

    def _write_release(self, service: dict[str, Any]) -> None:
        """Everything of the new release; nothing of the one that runs is touched."""
        for path, (text, mode) in service["files"].items():
            if path != service["secrets"]:
                _write(Path(path), text, mode)
        home = Path(service["home"])
        before = service["from"] and home / "releases" / service["from"] / "unit.service"
        installed = Path(service["unit_path"])
        if before and not before.exists() and installed.exists():
            _write(before, installed.read_text(), 0o640)

    def _switch(self, which: str) -> None:
        """Have unit and ``current`` be those of the new release, or of the one before."""
        changed = False
        for service in self._services:
            home, release = Path(service["home"]), service[which]
            if release is None:
                continue
            texts = self._before() if which == "from" else service["files"]
            if secrets := texts.get(service["secrets"]):
                _write(Path(service["secrets"]), *secrets)
            unit = home / "releases" / release / "unit.service"
            if unit.is_file():  # a release from before units were kept has none
                changed = _write(Path(service["unit_path"]), unit.read_text(), 0o644) or changed
            files.point(home / "current", f"releases/{release}")
        # A reload can take the GPU from running containers: only when a unit really changed.
        if changed:
            command("systemctl", "daemon-reload")

    def _stop(self, services: list[dict[str, Any]]) -> None:
        """All are stopped before any starts, so that two services can exchange their ports."""
        if services:
            command("systemctl", "stop", *(service["unit"] for service in services))

    def _start(self, services: list[dict[str, Any]]) -> None:
        for service in services:
            if not (_WANTS / service["unit"]).is_symlink():  # `enable` would reload all units
                command("systemctl", "enable", "--quiet", service["unit"])
        units = [service["unit"] for service in services if service["restart"]]
        if units:
            command("systemctl", "reset-failed", *units)
            command("systemctl", "start", *units)

    def _prove(self, stopped: float | None = None) -> str:
        self._note("proving")
        reasons = self._gate(self._restarting, "to", stopped)
        if not reasons:
            return self._end(GOOD, [])
        if not self._back and not self._strangers:
            # Nothing ran here before: what is there stays, for whoever looks into it.
            return self._end(FAILED, reasons)
        return self._revert(reasons, stopped)

    def _revert(self, reasons: list[str], stopped: float | None = None) -> str:
        """Back to what ran before, proved in the same way. What is new stays, or makes room."""
        self._note("reverting", reasons)
        back = self._back
        self._stop([one for one in back if _running(one) != one["from"]])
        if self._strangers and self._new:
            self._stop(self._new)
            for service in self._new:
                command("systemctl", "disable", "--quiet", service["unit"])
        self._switch("from")
        wrong = self._open_doors("from")
        self._start(back)
        wrong += self._set_strangers(running=True)
        wrong += self._gate(back, "from", stopped)
        if wrong:
            return self._end(FAILED, [*reasons, *(f"and back: {one}" for one in wrong)])
        return self._end(REVERTED, reasons)

    def _gate(self, services: list[dict[str, Any]], which: str, stopped: float | None) -> list[str]:
        """Ask every service that was started for real answers. Returns what is wrong."""
        wrong = self._asked(services, which, stopped)
        if wrong and any(_state(service) == "inactive" for service in services):
            # Stopped by somebody else, as a restart of Docker does: that proves nothing.
            self._start(services)
            wrong = self._asked(services, which, stopped)
        if wrong:
            return wrong
        # Where others serve meanwhile, nobody needs to meet a release that dies after a minute.
        closed = which == "to" and any(_has_others(one) for one in services)
        if closed and (wrong := self._soak()):
            return wrong
        self._each_door(Door.open)
        wrong = self._through_the_door(services, which)
        return wrong if wrong or which == "from" or closed else self._soak()

    def _through_the_door(self, services: list[dict[str, Any]], which: str) -> list[str]:
        """Clients come that way: the service's own word is not enough."""
        wrong = []
        for service in services:
            gate = _gate(service, which)
            if gate.get("door") and (said := check.through_the_door(gate)):
                wrong.append(f"{service['name']}: door: {said}")
        return wrong

    def _asked(
        self, services: list[dict[str, Any]], which: str, stopped: float | None
    ) -> list[str]:
        wrong = []
        for service in services:
            began = time.monotonic()
            answer = check.run({**_gate(service, which), "door": None})
            self._checks[service["name"]] = answer["checks"]
            health = answer["checks"][0]
            if stopped is not None and health["ok"]:
                self._down = max(self._down, began - stopped + health["seconds"])
            wrong += _bad(service, answer)
        return wrong

    def _soak(self) -> list[str]:
        """Some releases die after a minute: look on for a while, asking now and then."""
        seconds = max((float(one["soak_seconds"]) for one in self._restarting), default=0.0)
        until = time.monotonic() + seconds
        before = {service["name"]: _container(service) for service in self._restarting}
        asked = time.monotonic()
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(1.0, left))
            for service in self._restarting:
                if _container(service) != before[service["name"]]:
                    words = command("journalctl", "-u", service["unit"], "-n", "6", "-o", "cat")
                    said = [f"journal: {line}" for line in words.splitlines()]
                    return [f"{service['name']}: it died within {seconds:.0f} s of use", *said]
            if time.monotonic() - asked > _ASK_EVERY or left <= 1.0:
                for service in self._restarting:
                    gate = {**_gate(service, "to"), "warm_ups": 0, "boot_seconds": 5, "door": None}
                    if wrong := _bad(service, check.run(gate)):
                        return wrong
                asked = time.monotonic()
        return []

    def _each_door(self, action: Callable[[Door], None]) -> None:
        for service in self._restarting:
            if service.get("door"):
                action(Door(service["door"]))

    def _set_strangers(self, *, running: bool) -> list[str]:
        """Containers that served here before, started by hand: kept, and started again to revert.

        Their restart policy goes, so that a boot does not bring both; history keeps it.
        """
        wrong = []
        for one in self._strangers:
            name, _, policy = one.partition(" ")
            if not running:
                command("docker", "update", "--restart=no", name)
                command("docker", "stop", "--time", "60", name)
                continue
            command("docker", "update", f"--restart={policy or 'no'}", name)
            command("docker", "start", name)
            if command("docker", "inspect", "-f", "{{.State.Running}}", name) != "true":
                wrong.append(f"the container {name} does not start again")
        return wrong

    # Records

    def _journal(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self._place / "progress.json").read_text()))
        except (OSError, ValueError):
            return {}

    def _note(self, step: str, reasons: list[str] | None = None, result: str | None = None) -> None:
        document = {
            "id": self._request["id"],
            "step": step,
            "result": result,
            "reasons": reasons or [],
            "down_seconds": round(self._down, 3),
            "checks": self._checks,
        }
        try:
            _write(self._place / "progress.json", json.dumps(document), 0o600)
        except OSError:
            # Before anything is stopped that is reason enough to leave all as it is; after it
            # a full disk must not keep a service from starting.
            if step in ("writing", "draining", "stopping"):
                raise
        # A place to hold a switch at, to try what a fault does to it at each step.
        while (self._place / f"hold-{step}").exists():
            time.sleep(0.05)

    def _end(self, result: str, reasons: list[str], *, touched: bool = True) -> str:
        entries = [
            {
                "service": service["name"],
                "from": service["from"],
                "to": service["to"],
                "by": self._request["by"],
                "at": round(time.time()),
                "why": service["why"],
                "down_seconds": round(self._down, 1) if service["restart"] else 0.0,
                "result": result,
                "reasons": reasons[:3],
                "strangers": self._strangers,
            }
            for service in self._services
        ]
        self._each_door(Door.open)
        for service in self._services:
            release = service["to"] if result == GOOD else service["from"]
            if touched and result != FAILED and release:
                files.point(Path(service["home"], "good"), f"releases/{release}")
        with contextlib.suppress(OSError), (self._place.parent / "history.jsonl").open("a") as file:
            # A line that a power cut tore must not take the next one with it.
            file.writelines(f"\n{json.dumps(entry)}\n" for entry in entries)
            file.flush()
            os.fsync(file.fileno())
        self._note("ended", reasons, result)
        # The key is in there, and what is over needs no files any more.
        done = {**self._request, "services": [{**one, "files": {}} for one in self._services]}
        with contextlib.suppress(OSError):
            _write(self._place / "request.json", json.dumps(done), 0o600)
            (self._place / "before.json").unlink(missing_ok=True)
        return result


def _kept(place: Path) -> list[Any] | None:
    """Text and mode of a file; None when it is not there."""
    try:
        return [place.read_text(), place.stat().st_mode & 0o777]
    except OSError:
        return None


def _gate(service: dict[str, Any], which: str) -> dict[str, Any]:
    """What check.py asks a release: another one may have other names or another port."""
    kept = Path(service["home"], "releases", service[which] or "none", "release.json")
    gate = dict(service["gate"])
    with contextlib.suppress(OSError, ValueError, KeyError):
        gate.update(json.loads(kept.read_text())["gate"])
    gate["hasty"] = which == "to" and gate.get("hasty", False)
    return gate


def _bad(service: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    wrong = [
        f"{service['name']}: {one['name']}: {one['detail']}"
        for one in answer["checks"]
        if not one["ok"]
    ]
    return [*wrong, *(f"journal: {line}" for line in answer["journal"][-6:])] if wrong else []


def _has_others(service: dict[str, Any]) -> bool:
    """Whether other hosts serve the same behind one address."""
    return bool(service.get("door") and service["door"]["others"])


def _state(service: dict[str, Any]) -> str:
    return command("systemctl", "is-active", service["unit"])


def _container(service: dict[str, Any]) -> str:
    """Id of the service's container while it runs."""
    form = "{{if .State.Running}}{{.Id}}{{end}}"
    return command("docker", "inspect", "-f", form, f"sparkwright-{service['name']}")


def _running(service: dict[str, Any]) -> str:
    """The release whose container runs."""
    form = '{{if .State.Running}}{{index .Config.Labels "sparkwright.release"}}{{end}}'
    return command("docker", "inspect", "-f", form, f"sparkwright-{service['name']}")


def main(words: list[str]) -> int:
    """Run or settle the request; exit code 0 good, 3 reverted, 4 failed."""
    place = Path(words[-1])
    try:
        request = json.loads(place.read_text())
    except (OSError, ValueError):
        return 0  # nothing was ever begun
    switch = Switch(place.parent, request)
    if words[0] == "--settle":
        if switch.settle():
            subprocess.run(request["settle"], check=False)
        return 0
    try:
        result = switch.run()
    except Exception:
        traceback.print_exc()
        result = switch.rescue()
    return {GOOD: 0, REVERTED: 3}.get(result, 4)
