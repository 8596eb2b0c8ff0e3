"""The shape of a role that asks hosts for a command of the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.run import questions
from sparkwright.run.state import HostRun, host_run


def ask_each(title: str, question: Callable[[Host, HostRun], Any]) -> None:
    """Ask this host; what it answers is the command's."""
    one = host_run(ctx_host.get())
    if one is None:
        return

    def asked(host: Host) -> Sequence[str]:
        one.answer = question(host, one)
        return ()

    questions.answered(name=title, question=asked)
