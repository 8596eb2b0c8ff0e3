"""Models: what lies on hosts, for ``sparkwright models list|prune|verify``."""

from __future__ import annotations

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.host.lib.records import encode
from sparkwright.operations import disk_usage
from sparkwright.run import questions
from sparkwright.run.asked import ask_each
from sparkwright.run.state import HostRun, host_run


def listed(answers: str | None = None, planless: bool = False) -> None:
    """Models, images and what belongs to them.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """

    def usage(host: Host, one: HostRun) -> object:
        return encode(disk_usage.listed(host, questions.disk_usage_request(one)))

    ask_each("Models: list", usage)


def pruned(answers: str | None = None, planless: bool = False) -> None:
    """Remove what neither the plan nor a kept release needs; without a plan, no model and no image.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    one = host_run(ctx_host.get())
    if one is not None:
        disk_usage.pruned(
            name="Models: prune",
            request=questions.disk_usage_request(one),
            answered=lambda usage: setattr(one, "answer", encode(usage)),
            break_lock=one.settings.break_lock,
        )


def verified(planless: bool = False) -> None:
    """Hash every file of the planned models again; a wrong one fails the host.

    Args:
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    one = host_run(ctx_host.get())
    if one is not None:
        questions.answered(
            name="Models: hash again", question=lambda host: questions.hashed_again(host, one)
        )
