"""The live page's data: a host as plain JSON, made of its last two answers.

The page's script formats numbers, and sets text as text: nothing needs escaping here.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import isfinite
from typing import Any

from sparkwright.checks.configuration.parts import Memory
from sparkwright.checks.service.diagnose import watch_findings
from sparkwright.extras.dashboard.glance import Glance
from sparkwright.host.lib.records import encode, replace
from sparkwright.results.load import Line, Seen, lines
from sparkwright.results.progress import phases
from sparkwright.results.status import Deployment, Planned, cells
from sparkwright.text import lock_owner, sizes
from sparkwright.text.marks import in_maintenance
from sparkwright.text.visible import paragraph, visible

Meant = Callable[[str, str], bool]
#: Seconds after the end of a switch during which the switch counts as part of the roll-out.
_LATELY = 3600
#: Seconds after which an answer is outdated.
_STALE = 30.0
#: Difference for a release that the host switched to after this command had read the plan.
_NEWER = "switched since the dashboard was started: restart the dashboard to compare with the plan"
#: Largest number of items of a list, and of characters of a text, that a page gets.
_ITEMS, _LETTERS = 64, 500


@dataclass(frozen=True)
class Expected:
    """A host as planned.

    Attributes:
        services: services by name; empty for a host without a plan.
        models: service -> repository of the model.
        memory: planned memory; None without a plan.
        read: time when the plan was read, seconds since the epoch.
    """

    services: Mapping[str, Planned] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    memory: Memory | None = None
    whole: bool = True
    read: float = field(default_factory=time.time)


@dataclass
class HostView:
    """A host as the page shows it.

    Attributes:
        answer: the last answer; the host may have been switched off after the answer.
        at: time of the answer, seconds since the epoch; 0 before the first answer.
    """

    name: str
    expected: Expected
    load: Seen = field(default_factory=Seen)
    answer: Glance | None = None
    at: float = 0.0

    def take(self, answer: Glance | Exception) -> None:
        """Record an answer, or the reason for its absence."""
        if not isinstance(answer, Glance):
            self.load = self.load.then(answer)
            return
        last = self.load.now or self.load.before
        if last and not 0 < answer.load.at - last.at <= _STALE:
            self.load = Seen()  # the mean over a pause is not the present rate
        self.load, self.answer, self.at = self.load.then(answer.load), answer, time.time()

    def data(self, meant: Meant) -> dict[str, Any]:
        """The host as JSON, with the chosen services."""
        problem = "" if self.load.now else self.load.problem
        data: dict[str, Any] = {
            "host": self.name, "state": "off" if problem else "up" if self.load.now else "waiting",
            "problem": paragraph(problem), "seen": self.at, "bar": self._bar(None),
            "services": [], "findings": [], "fetches": [], "ended": [],
        }  # fmt: skip
        if self.answer is None:
            names = [name for name in self.expected.services if meant(self.name, name)]
            return {**data, "services": [self._planned(name) for name in names]}
        seen = self._deployment(self.answer).only(lambda name: meant(self.name, name))
        last = Seen(self.answer.load, self.load.before)
        loads = {line.service: line for line in lines({self.name: last}, meant)}
        machine = next(iter(loads.values()), Line(self.name, None))
        names = sorted({*seen.services, *seen.planned}, key=lambda name: name not in seen.planned)
        return dict(_bounded(data | {
            "machine": asdict(machine),
            "disks": self.answer.disks, "bar": self._bar(machine),
            "services": [self._service(name, seen, loads) for name in sorted(names[:_ITEMS])],
            "findings": [
                {
                    "severity": item.severity, "service": item.subject.service,
                    "text": visible(f"{item.id}: {item.observed}"),
                    "more": [visible(text) for text in (item.reason, item.remedy) if text],
                }
                for item in watch_findings(self.name, seen.watch, seen.now)
                if meant(self.name, item.subject.service or "") or item.subject.service is None
            ],
            "fetches": encode(self.answer.fetches),
            "usage": encode(sorted(self.answer.usage, key=lambda row: -row.requests)),
            "maintenance": in_maintenance(seen.maintenance, seen.now) if seen.maintenance else "",
            "work": _work(seen),
            "ended": [encode(end) for end in seen.history if 0 <= seen.now - end.at < _LATELY][-5:],
        }))  # fmt: skip

    def _deployment(self, answer: Glance) -> Deployment:
        """Combine the status with the plan; only the release is compared."""
        newer = {end.to for end in answer.status.history if end.at > self.expected.read}
        planned = {}
        for name, service in self.expected.services.items():
            status = answer.status.services.get(name)
            runs = status.current if status else None
            drift = (_NEWER if runs in newer else f"release {service.release}",)
            planned[name] = replace(service, drift=() if runs == service.release else drift)
        return Deployment(**vars(answer.status), planned=planned, plan_known=self.expected.whole)

    def _planned(self, name: str) -> dict[str, Any]:
        service, model = self.expected.services.get(name), self.expected.models.get(name, "")
        return {"name": name, "model": model, "address": service.url if service else ""}

    def _service(self, name: str, seen: Deployment, loads: Mapping[Any, Line]) -> dict[str, Any]:
        _, _, up, _, health, plan = cells(seen, name)
        status, data = seen.services.get(name), self._planned(name)
        kept = status.releases.get(status.current or "") if status else None
        record = kept.service if kept else None
        serves = bool(status and status.health and status.health.code == 200)
        phase = seen.switch and seen.switch.phases.get(name)
        return data | {
            "model": data["model"] or ", ".join(record.models if record else ()),
            "well": serves or name in seen.sleeping, "up": up, "health": health, "plan": plan,
            "phase": phases({name: phase}, seen.now) if phase else "",
            "exclusive": bool(record and record.exclusive),
            "load": asdict(loads[name]) if name in loads else {},
            "hour": self.answer and self.answer.hour.get(name),
        }  # fmt: skip

    def _bar(self, line: Line | None) -> list[tuple[str, float]]:
        """Name and GiB of each part of the memory: as planned, or, without a plan, used and free
        memory.
        """
        memory = self.expected.memory
        if memory and memory.total_gib:
            return list(memory.bar)
        if line is None or line.used is None or line.total is None:
            return []
        return [("others", line.used / sizes.GIB), ("free", (line.total - line.used) / sizes.GIB)]


def _bounded(value: Any) -> Any:
    """Cut long lists and texts of a host, and leave out numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key[:_LETTERS]: _bounded(each) for key, each in islice(value.items(), _ITEMS)}
    if isinstance(value, list | tuple):
        return [_bounded(each) for each in value[:_ITEMS]]
    if isinstance(value, str):
        return value[:_LETTERS]
    return None if isinstance(value, float) and not isfinite(value) else value


def _work(seen: Deployment) -> str:
    """Describe the owner of the host's lock, the owner's batch, and the progress of the host's
    switch.
    """
    lock, switch = seen.lock, seen.switch
    parts = [lock_owner.described(lock, seen.now), visible(lock.batch, 40)] if lock else []
    if switch and switch.step not in ("", "ended"):
        parts.append(phases(switch.phases, seen.now) or visible(switch.step, 40))
    elif lock:
        since = seen.now if lock.since is None else lock.since
        ended = any(end.at >= since for end in seen.history)
        parts.append("switched" if ended else "not switched yet")
    return ": ".join(filter(None, parts))


class Fleet:
    """All hosts, and the open pages, which wait for changes.

    Args:
        meant: whether a service of a host is shown.

    Attributes:
        pages: number of open pages.
    """

    def __init__(self, hosts: Mapping[str, Expected], meant: Meant = lambda *_: True) -> None:
        self._views = {name: HostView(name, expected) for name, expected in hosts.items()}
        self._meant = meant
        self._changed = threading.Condition()
        self._version = 1
        self._data = {name: (1, view.data(meant)) for name, view in self._views.items()}
        self.pages = 0

    def take(self, host: str, answer: Glance | Exception) -> None:
        """Record a host's answer or the reason for its absence, and wake every page."""
        view = self._views[host]
        view.take(answer)
        data = view.data(self._meant)
        with self._changed:
            self._version += 1
            self._data[host] = self._version, data
            self._changed.notify_all()

    def open(self, pages: int) -> None:
        """Count a page that opens (1) or closes (-1)."""
        with self._changed:
            self.pages += pages

    def since(self, version: int, seconds: float) -> tuple[int, list[dict[str, Any]]]:
        """Return the new version, and the hosts that changed after a version; wait some seconds for
        a change.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._version > version, seconds)
            changed = [data for at, data in self._data.values() if at > version]
            version, old = self._version, time.time() - _STALE
        # After a pause of all pages, an earlier answer is outdated.
        return version, [
            data | {"state": "waiting"} if data["state"] == "up" and data["seen"] < old else data
            for data in changed
        ]

    def services(self, host: str) -> set[str] | None:
        """Names of a host's services; None if the host is not in the fleet."""
        data = self._data.get(host)
        return {service["name"] for service in data[1]["services"]} if data else None
