"""Maintenance: a host out of every pool and back, for ``sparkwright maintenance``."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.host.lib.records import encode
from sparkwright.host.maintenance import MaintenanceRequest
from sparkwright.operations import control
from sparkwright.operations.locks import OWNER
from sparkwright.run.state import host_run


def maintenance(
    on: bool, why: str = "", answers: str | None = None, planless: bool = False
) -> None:
    """Take each host out of every pool, or put it back once it answers.

    Args:
        why: for those who ask later.
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    one = host_run(ctx_host.get())
    if one is None:
        return
    rollout = one.settings.rollout
    control.in_maintenance(
        name=f"Maintenance: {'on' if on else 'off'}",
        request=MaintenanceRequest(
            on, control.SOCKETS, one.settings.services_root, OWNER.by, why,
            rollout.notice_seconds, rollout.drain_seconds,
        ),
        answered=lambda answer: setattr(one, "answer", encode(answer)),
        break_lock=one.settings.break_lock,
    )  # fmt: skip
