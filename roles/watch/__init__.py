"""Watch: a timer on the host that looks at services, GPU and disks, and says what goes wrong.

Installed last, so that it expects what was proved. `sparkwright status` shows its verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.contents import unwritten
from sparkwright.doctor.watch import SERVICE, TIMER, Watch, watch_of
from sparkwright.facts.programs import laid_out
from sparkwright.host.watch import install as program
from sparkwright.host.watch import watch as watch_program

_UNITS = "/etc/systemd/system"


def watch() -> None:
    """Have the watch that the plan wants, or none."""
    steps.step("Watch: timer", _pending, _act)


def _wanted(run: site.HostRun) -> Watch | None:
    return watch_of(run.plan, run.wanted.releases)


def files(run: site.HostRun) -> dict[str, tuple[str, int]]:
    """Every file of the watch: text and mode, by path."""
    wanted = _wanted(run)
    if wanted is None:
        return {}
    programs = laid_out(wanted.home, watch_program)
    return {
        **{path: (text, 0o644) for path, text in programs.items()},
        wanted.config_path: (wanted.config, 0o644),
        wanted.expected_path: (wanted.expected, 0o644),
        f"{_UNITS}/{SERVICE}": (wanted.service, 0o644),
        f"{_UNITS}/{TIMER}": (wanted.timer, 0o644),
    }


def units(run: site.HostRun) -> list[str]:
    """The unit by which it runs."""
    return [TIMER] if _wanted(run) else []


def _pending(run: site.HostRun) -> Sequence[str]:
    wanted = files(run)
    if not wanted:
        return ["remove the watch"] if SERVICE in run.seen.unit_files else []
    found = unwritten(run, wanted)
    timer = run.seen.units.get(TIMER, {})
    if timer.get("ActiveState") != "active" or timer.get("UnitFileState") != "enabled":
        found.append(f"start {TIMER}")
    return found


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    request = {
        "files": files(run),
        "home": f"{run.plan.settings.services_root}/watch",
        "timer": TIMER,
        "service": SERVICE,
    }
    done: list[str] = remote.ask(host, "sparkwright-watch", program, request)
    return done
