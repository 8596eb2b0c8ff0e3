"""Tables of the fleet's services and their history: status, history, diff.

The data are hosts' answers (sparkwright/host/status.py); this module fetches nothing.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from sparkwright.checks.service.diagnose import watch_findings
from sparkwright.findings.finding import errors_first
from sparkwright.findings.render import Paint, headline
from sparkwright.findings.render import text as findings_text
from sparkwright.host.lib import homes, http, records
from sparkwright.host.lib.exclusive import NOBODY
from sparkwright.host.release import HistoryEntry
from sparkwright.host.status import HostStatus, KeptRelease, ServiceStatus
from sparkwright.text import marks, screen
from sparkwright.text.lock_owner import age, described
from sparkwright.text.table import columns, folded_rows
from sparkwright.text.timestamps import epoch, utc
from sparkwright.text.visible import visible

#: Column of the status table in which merged hosts may differ.
_HEALTH = 6


@records.dataclass(frozen=True)
class Planned:
    """Planned release of a service: id, tag, and the texts of its files by name.

    Attributes:
        url: address for clients; empty for a follower, whose head answers.
    """

    release: str
    tag: str
    texts: dict[str, str]
    drift: tuple[str, ...] = ()
    url: str = ""
    served_names: tuple[str, ...] = ()


@records.dataclass(frozen=True)
class Deployment(HostStatus):
    """A host's status and its plan.

    Attributes:
        plan_known: False if the plan is broken, which hides differences.
        refused: ids of preflight's errors, for which a deploy would not change a differing host.
    """

    planned: dict[str, Planned] = records.field(default_factory=dict)
    plan_known: bool = True
    refused: tuple[str, ...] = ()

    def only(self, meant: Callable[[str], bool]) -> Self:
        """Return the status, limited to the chosen services."""
        return records.replace(
            self,
            services={name: each for name, each in self.services.items() if meant(name)},
            planned={name: each for name, each in self.planned.items() if meant(name)},
            history=tuple(entry for entry in self.history if meant(entry.service)),
            actions=tuple(
                each for each in self.actions if each.service is None or meant(each.service)
            ),
        )


def summary(seen: Deployment) -> dict[str, Any]:
    """Return a host as ``status --json`` prints it: releases with their tags, without files."""
    data: dict[str, Any] = records.encode(seen)
    del data["history"], data["actions"]
    for name, service in seen.services.items():
        shown = data["services"][name]
        shown["releases"] = {
            release: {"at": kept.at, "tag": kept.service and kept.service.tag}
            for release, kept in service.releases.items()
        }
        del shown["texts"]
    for planned in data["planned"].values():
        del planned["texts"]
    return data


def render_status(deployments: Mapping[str, Deployment], paint: Paint = str) -> str:
    """Render the watch's findings, errors first; then a line per service.

    Each line has the service's release, its uptime, its health, and its differences.
    """
    rows: list[Sequence[str]] = [
        ("HOST", "SERVICE", "RELEASE", "TAG", "UP", "RESTARTS", "HEALTH", "PLAN")
    ]
    for host, seen in deployments.items():
        names = sorted({*seen.services, *seen.planned})
        rows += [(host, name, *cells(seen, name)) for name in names]
        if not names:
            plan = "nothing planned" if seen.plan_known else "unknown"
            rows.append((host, "-", "-", "-", "-", "-", "-", plan))
    watched = errors_first(
        finding
        for host, seen in deployments.items()
        for finding in watch_findings(host, seen.watch, seen.now)
    )
    first = [headline(watched), "", findings_text(watched, paint=paint), ""] if watched else []
    notes = [f"  {host}: {note}" for host, seen in deployments.items() for note in _notes(seen)]
    notes += [f"  {host}: {name}: {planned.url} serves {', '.join(planned.served_names)}"
              for host, seen in deployments.items()
              for name, planned in seen.planned.items() if planned.url]  # fmt: skip
    return "\n".join([*first, *columns(folded_rows(rows, _HEALTH, _milliseconds)), *notes])


def _notes(seen: Deployment) -> Iterator[str]:
    """Yield notes on a host's maintenance, stopped services, lock and running switch."""
    if seen.maintenance:
        yield marks.in_maintenance(seen.maintenance, seen.now)
    for name, service in seen.services.items():
        if service.stopped and service.stopped.holds(service.unit):
            yield f"{name}: {marks.stopped(service.stopped, seen.now)}"
    if seen.lock:
        yield f"{described(seen.lock, seen.now)} is at work on the host"
    if seen.switch and seen.switch.step != "ended":
        yield f"a switch is under way: {visible(seen.switch.step, 40)}"


def well(seen: Deployment) -> bool:
    """Return whether every planned service runs, is healthy and as planned, and the watch reports
    no error. Without a plan the result is unknown. A host in maintenance does not count, since a
    user took the host out.
    """
    if not seen.plan_known:
        return False
    if seen.maintenance:
        return True
    watched = seen.watch.findings if seen.watch else ()
    return not any(finding.severity == "error" for finding in watched) and all(
        not planned.drift and (name in seen.sleeping or _serves(seen.services.get(name)))
        for name, planned in seen.planned.items()
    )


def _serves(service: ServiceStatus | None) -> bool:
    if service is None or service.health is None:
        return False
    return _up(service) and service.health.code == 200


def past(seen: Deployment) -> list[HistoryEntry | homes.Action]:
    """Return a host's switches and other requested actions, oldest first."""
    return sorted((*seen.history, *seen.actions), key=lambda entry: entry.at)


def render_history(deployments: Mapping[str, Deployment], last: int) -> str:
    """Render switches, starts, stops and maintenance with user, time and reason; newest last.

    The line of a switch also has its downtime and its result.
    """
    rows: list[Sequence[str]] = [
        ("WHEN", "HOST", "SERVICE", "FROM", "TO", "BY", "DOWN", "RESULT", "WHY")
    ]
    result = [(entry, host, seen) for host, seen in deployments.items() for entry in past(seen)]
    for entry, host, seen in sorted(result, key=lambda item: item[0].at)[-last:]:
        rows.append((utc(entry.at).strftime("%Y-%m-%d %H:%MZ"), host, *_event(entry, seen)))
    return "\n".join(columns(rows)) if result else "no switch is recorded"


def _event(entry: HistoryEntry | homes.Action, seen: Deployment) -> Sequence[str]:
    if isinstance(entry, homes.Action):
        return (entry.service or "-", "-", "-", entry.by, "-", entry.done, entry.why)
    kept = seen.services[entry.service].releases if entry.service in seen.services else {}
    return (
        entry.service,
        _named(entry.from_release, kept),
        _named(entry.to, kept),
        entry.by,
        f"{entry.down_seconds:.1f} s",
        entry.result,
        entry.reasons[0] if entry.reasons else ", ".join(entry.why),
    )


def switches(deployments: Mapping[str, Deployment]) -> list[dict[str, Any]]:
    """Return every switch in the form of the fleet's page
    (sparkwright/extras/dashboard/contents.py).
    """
    return [
        {
            "host": host,
            "service": entry.service,
            "who": entry.by,
            "when": utc(entry.at).isoformat(),
            "before": entry.from_release,
            "after": entry.to,
            "down_seconds": entry.down_seconds,
            "ended": {"good": "serving", "reverted": "went back"}.get(entry.result, entry.result),
        }
        for host, seen in deployments.items()
        for entry in seen.history
    ]


def render_diff(deployments: Mapping[str, Deployment]) -> str:
    """Render unified diffs between the plan and the releases on the hosts; empty if they are equal.
    Equal hosts are shown once."""
    lines: list[str] = []
    for hosts, seen in screen.folded(deployments.items(), _differing):
        host = ", ".join(hosts)
        for name, planned in seen.planned.items():
            item = seen.services.get(name)
            for file, text in planned.texts.items():
                runs = (item.texts.get(file) if item else None) or ""
                lines += difflib.unified_diff(
                    runs.splitlines(),
                    text.splitlines(),
                    f"{host}: {name}/{file} (runs)",
                    f"{host}: {name}/{file} (planned)",
                    lineterm="",
                )
            others = [word for word in planned.drift if not word.startswith(("release", "unit"))]
            lines += [f"{host}: {name}: {', '.join(others)}"] if others else []
        for name in sorted(set(seen.services) - set(seen.planned)):
            remedy = f"sparkwright remove --service {name}"
            lines.append(f"{host}: {name}: runs, but is not planned ({remedy})")
    return "\n".join(map(visible, lines))


def _differing(seen: Deployment) -> str:
    """Return a text that is equal for hosts with equal diffs."""
    return repr((seen.planned, {name: item.texts for name, item in seen.services.items()}))


def cells(seen: Deployment, name: str) -> tuple[str, ...]:
    """Return a service's release, tag, uptime, restarts, health and difference from the plan."""
    planned, service = seen.planned.get(name), seen.services.get(name)
    if service is None:
        new = f"to start {planned.tag}" if planned else "-"
        return ("-", "-", "-", "-", "-", _refused(seen) or new)
    container = service.container
    release = container.release if container and container.running else None
    kept = service.releases.get(release or service.current or "")
    up, health = "stopped", _health(service.health)
    mark = service.stopped if service.stopped and service.stopped.holds(service.unit) else None
    if mark:
        health = f"by {visible(mark.by, 40)}"
    elif service.unit.get("ActiveState") == "failed":
        up = f"given up ({service.unit.get('Result', '?')})"
    # An idle engine sleeps in its process, and its unit stays active.
    elif seen.sleeping.get(name) == NOBODY or (name in seen.sleeping and not _up(service)):
        runs = seen.sleeping[name]
        up, health = "sleeps", "idle" if runs == NOBODY else f"{visible(runs, 41)} runs"
    elif _up(service) and container:
        up = age(seen.now - epoch(container.started))
    plan = "not planned" if planned is None else "as planned"
    if planned and planned.drift:
        plan = _refused(seen) or _difference(planned.drift, was_stopped=bool(mark))
    return (
        release or service.current or "-",
        kept.service.tag if kept and kept.service else "?",
        up,
        service.unit.get("NRestarts", "?"),
        health,
        plan if seen.plan_known else "unknown",
    )


#: A deploy's action, by the last word of a service's differences.
_ENDS = {"start": "starts it", "restart": "restarts it", "stop": "stops it"}


def _refused(seen: Deployment) -> str:
    return f"refused: {', '.join(seen.refused)}" if seen.refused else ""


def _difference(drift: Sequence[str], *, was_stopped: bool) -> str:
    """Describe the differences, and the next deploy's action on the service.

    Args:
        was_stopped: whether a user stopped the service, which is not a difference from the plan.
    """
    changed = [word for word in drift if word not in _ENDS and not word.startswith("stopped ")]
    ends = [f"a deploy {_ENDS[word]}" for word in drift if word in _ENDS]
    if was_stopped and not changed:
        return "as planned, but stopped"
    return f"differs: {'; '.join(filter(None, [', '.join(changed), *ends]))}"


def _milliseconds(health: str) -> float:
    """Return /health's response time from a cell of the table; negative if unhealthy."""
    match = re.fullmatch(r"ok in (\d+) ms", health)
    return float(match[1]) if match else -1


def _health(health: http.Health | None) -> str:
    if health is None:
        return "-"
    if health.code == 200:
        return f"ok in {1000 * health.seconds:.0f} ms"
    return str(health.code or health.message)


def _up(service: ServiceStatus) -> bool:
    running = service.container is not None and service.container.running
    return running and service.unit.get("ActiveState") == "active"


def _named(release: str | None, kept: Mapping[str, KeptRelease]) -> str:
    if release is None:
        return "-"
    service = kept[release].service if release in kept else None
    return f"{release} ({service.tag})" if service else release
