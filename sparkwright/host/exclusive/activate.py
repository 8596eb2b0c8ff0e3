"""Begin a switch to another member of an exclusive group. The program runs on the host as root.

The switch is the same systemd job as in a deploy: it drains and stops the running service, starts
the other service, sends it real requests, and switches back if the requests fail.
"""

import secrets
from pathlib import Path

from sparkwright.host import control, lock, release, service
from sparkwright.host.lib import documents, exclusive, files, homes, records, systemd
from sparkwright.host.lib.processes import run


@records.dataclass(frozen=True)
class ActivateRequest:
    """Request to run a member of a group.

    Attributes:
        token: token of the run that has the host's lock.
        dry: whether to report the effect of a switch without switching.
        rests: whether to stop the service instead, so that no member runs.
        boot_lines: same as in a switch's request.
    """

    service: str
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    token: str | None = None
    dry: bool = False
    rests: bool = False
    boot_lines: dict[str, str] = records.field(default_factory=dict)


@records.dataclass(frozen=True)
class ActivateAnswer:
    """Result of an activation.

    Attributes:
        service_names: names of all services of the host that belong to a group.
        group: group of the service; None if the host has no such service.
        was: the previous member.
        switch: id of the started switch; None if there was nothing to do.
        result: good, reverted or failed; None without a switch.
        down_seconds: seconds from the old member's stop to the new member's first healthy answer.
        faults: failures, or reasons why nothing was done, as lines.
    """

    service_names: tuple[str, ...] = ()
    group: str | None = None
    was: str | None = None
    switch: str | None = None
    result: str | None = None
    down_seconds: float = 0.0
    faults: tuple[str, ...] = ()


def main(request: ActivateRequest) -> ActivateAnswer:
    """Start the switch, unless the member already runs or no group contains the service."""
    state = Path(request.services_root, "state")
    groups, runs = exclusive.groups(state), exclusive.running(state)
    members = ((name, group) for group, its in groups.groups.items() for name in its.members)
    of = {name: group for name, group in members if name != exclusive.NOBODY}
    if (group := of.get(request.service)) is None:
        return ActivateAnswer(tuple(of))
    answer = ActivateAnswer(tuple(of), group, runs[group])
    if (runs[group] == request.service) is not request.rests:
        return answer
    root, text = state.parent / "services", f": {request.why}" if request.why else ""
    new = service.current(root / request.service)
    if problems := _in_the_way(state, request, new):
        return records.replace(answer, faults=(problems,))
    if request.dry or new is None:
        return answer
    switches = []
    if not request.rests:
        activated = (f"activated{text}",)
        switches.append(release.ServiceSwitch(new, None, activated, restart=True, slept=True))
    if old := service.current(root / runs[group]):
        why = f"sleeps{text}" if request.rests else f"sleeps for {request.service}{text}"
        switches.append(release.ServiceSwitch(old, old.release, (why,), restart=True, sleeps=True))
    switch = release.SwitchRequest(
        id=secrets.token_hex(6),
        by=request.by,
        settle=groups.settle,
        recover=groups.recover,
        services=tuple(switches),
        active={group: runs[group]},
        activates={group: exclusive.NOBODY if request.rests else request.service},
        boot_lines=request.boot_lines,
    )
    path = state / "switch"
    files.write_record(path / "request.json", switch, 0o600, parents=0o750)
    (path / "progress.json").unlink(missing_ok=True)
    systemd.systemctl("reset-failed", control.SWITCH)
    done = run(*switch.settle)
    if not done.ok:
        return records.replace(answer, faults=(f"the switch can't be started: {done.message}",))
    return records.replace(answer, switch=switch.id)


def _in_the_way(state: Path, request: ActivateRequest, new: service.Service | None) -> str | None:
    """Return the reason why the host can't switch to a service now; None if the host can."""
    if (mark := homes.maintenance()) is not None:
        return f"the host is in maintenance, by {mark.by}"
    holder = documents.record(lock.Owner, state / "lock.json")
    if holder is not None and holder.token != request.token:
        return f"{holder.by} is at work on this host"
    if systemd.unit(control.SWITCH).get("ActiveState") in systemd.RUNNING:
        return "a switch is under way: wait for its end"
    return None if new else f"{request.service} was never deployed here: deploy it first"
