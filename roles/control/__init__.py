"""Control: services started, stopped, restarted or exchanged for another one of their group, for
``sparkwright start|stop|restart|activate``."""

from __future__ import annotations

from functools import partial

from pyinfra.context import ctx_host

from sparkwright.host.control import RESTART, ControlRequest
from sparkwright.host.exclusive.activate import ActivateRequest
from sparkwright.host.lib.records import encode
from sparkwright.operations import control, exclusive
from sparkwright.operations.locks import OWNER
from sparkwright.run.state import Run, host_run, run_of

ACTIVATE = "activate"


def controlled(
    action: str,
    services: str | None = None,
    why: str = "",
    now: bool = False,
    keep: bool = False,
    wait: bool = True,
    answers: str | None = None,
    planless: bool = False,
) -> None:
    """Start, stop or restart services of each host; restarts come one host after the other.

    Args:
        action: start, stop or restart.
        services: names with commas between them; every one without.
        why: for those who ask later.
        now: whether running requests are cut off.
        keep: whether what is stopped stays so over a boot.
        wait: whether what is started must answer.
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    host = ctx_host.get()
    one = host_run(host)
    if one is None:
        return
    rollout, run = one.settings.rollout, run_of(host)
    control.controlled(
        name=f"Services: {action}",
        request=ControlRequest(
            action, control.SOCKETS, tuple(services.split(",")) if services else None,
            one.settings.services_root, OWNER.by, why, now, keep, wait,
            rollout.notice_seconds, rollout.drain_seconds,
        ),
        answered=lambda answer: setattr(one, "answer", encode(answer)),
        unless=partial(_failed, run, action),
        break_lock=one.settings.break_lock,
        # The others serve meanwhile.
        _serial=action == RESTART and not now,
    )  # fmt: skip


def activated(
    service: str,
    why: str = "",
    dry_run: bool = False,
    answers: str | None = None,
    planless: bool = False,
) -> None:
    """Have an exclusive service run instead of the one of its group that does, host after host.

    Args:
        service: its name.
        why: for those who ask later.
        dry_run: whether it is only said what would be done.
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    host = ctx_host.get()
    one = host_run(host)
    if one is None:
        return
    exclusive.activated(
        name=f"Services: activate {service}",
        request=ActivateRequest(service, one.settings.services_root, OWNER.by, why, dry=dry_run),
        answered=lambda answer: setattr(one, "answer", encode(answer)),
        unless=partial(_failed, run_of(host), ACTIVATE),
        break_lock=one.settings.break_lock,
        _serial=not dry_run,
    )


def _failed(run: Run, action: str) -> str | None:
    """Why no further host is restarted: one before it does not answer."""
    wrong = [name for name, one in run.hosts.items() if one.answer and one.answer["wrong"]]
    done = {RESTART: "restarted", ACTIVATE: "switched"}.get(action)
    return f"not {done}, since {wrong[0]} does not answer" if done and wrong else None
