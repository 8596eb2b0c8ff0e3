"""Take this host out of every pool, or put it back once its services answer. The program runs on
the host as root.

The mark survives a boot. HAProxy then starts without its former state, but the health program
(``proxy/health.py``) reports the services as unhealthy because of the mark, so no pool sends the
host requests.
"""

import time
from pathlib import Path

from sparkwright.host.lib import exclusive, files, homes, systemd, threads, trusted
from sparkwright.host.lib.homes import MAINTENANCE, Action, Maintenance
from sparkwright.host.lib.records import dataclass
from sparkwright.host.proxy import place, pool
from sparkwright.host.service import records
from sparkwright.host.smoke import check


@dataclass(frozen=True)
class MaintenanceRequest:
    """Request to begin or end maintenance.

    Attributes:
        on: whether maintenance begins.
    """

    on: bool
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""


@dataclass(frozen=True)
class MaintenanceAnswer:
    """Result of a maintenance request, and the state of the host after it.

    Attributes:
        now: the maintenance mark; None if the host is not in maintenance.
        done, left: completed and impossible steps, as text.
        faults: reasons why the host stays in maintenance, as lines.
    """

    now: Maintenance | None
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


_BARE = "{} has no proxy here: clients keep sending requests to it until it is stopped"


def pools(services: dict[str, Path]) -> dict[str, pool.Pool]:
    """Return the pools of services with a proxy on this host."""
    return {name: item.pool for name, item in records(services).items() if item.pool}


def begin(request: MaintenanceRequest, services: dict[str, Path]) -> MaintenanceAnswer:
    """Leave every pool, let running requests end, and write the mark."""
    left = pools(services)
    threads.at_once(place.leave, left.values())
    mark = Maintenance(request.by, round(time.time()), request.why)
    files.write_record(Path(MAINTENANCE), mark)
    return MaintenanceAnswer(
        mark,
        tuple(f"{name} has left every pool, and is drained" for name in left),
        tuple(_BARE.format(name) for name in services if name not in left),
    )


def end(
    request: MaintenanceRequest, services: dict[str, Path], was: Maintenance | None
) -> MaintenanceAnswer:
    """Wait until every service answers, then remove the mark and have the pools send requests
    again.
    """
    stopped = [name for name, home in services.items() if _is_stopped(home)]
    asleep = exclusive.sleeping(Path(request.services_root, "state"))
    awake = {name: home for name, home in services.items() if name not in {*stopped, *asleep}}
    gates = {name: record.gate for name, record in records(awake).items()}
    failures: list[str] = []

    def answer(name: str) -> None:
        failures.extend(check.without_proxy(name, gates[name])[0])

    threads.at_once(answer, gates)
    if failures:
        return MaintenanceAnswer(was, faults=tuple(sorted(failures)))
    file = Path(MAINTENANCE)
    if file.exists():
        with trusted.directory(file.parent):
            file.unlink(missing_ok=True)
    threads.at_once(place.admit, pools(services).values())
    failures += check.proxy_faults(gates)
    if failures and was:
        files.write_record(Path(MAINTENANCE), was)
        return MaintenanceAnswer(was, faults=tuple(failures))
    return MaintenanceAnswer(
        None,
        tuple(f"{name} answers, and is back in its pools" for name in gates),
        tuple(f"{name} is stopped, so its health was not checked" for name in stopped),
        tuple(failures),
    )


def _is_stopped(home: Path) -> bool:
    mark = homes.stopped(home)
    return mark is not None and mark.holds(systemd.unit(homes.unit(home.name)))


def main(request: MaintenanceRequest) -> MaintenanceAnswer:
    """Begin or end maintenance. The mark keeps the user who began maintenance first."""
    services, was = homes.services(request.services_root), homes.maintenance()
    if request.on and was:
        return MaintenanceAnswer(was)
    answer = begin(request, services) if request.on else end(request, services, was)
    if bool(answer.now) != bool(was):
        done = f"maintenance {'on' if request.on else 'off'}"
        action = Action(time.time(), request.by, done, why=request.why)
        homes.note(Path(request.services_root, homes.ACTIONS), [action])
    return answer
