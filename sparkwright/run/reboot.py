"""A reboot that a new driver needs: done where it is asked for, and waited for."""

from __future__ import annotations

import time

import gevent
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from sparkwright.bootstrap.driver import reboot_needed
from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observe_anew
from sparkwright.facts.others import Ours, fail, failing
from sparkwright.findings.render import text
from sparkwright.host.bootstrap import reboot as program
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.host.bootstrap.reboot import RebootRequest
from sparkwright.operations import locks
from sparkwright.operations.changing import Commands, operation, paint
from sparkwright.run.bootstrap import state_of

#: Seconds: a Spark takes about two minutes, a server with much memory to check takes longer.
_SECONDS, _PAUSE = 900.0, 5.0


@operation()
def rebooted(state: BootstrapState, *, asked: bool = False) -> Commands:
    """Reboot the host for its new driver, and go on once it is back; unasked, fail it.

    Not pyinfra's own ``server.reboot``: it tells a reboot by the uptime, which a container shares
    with its machine, and waits under the host's lock.

    Args:
        state: the host before.
        asked: whether it may be rebooted.
    """
    host = ctx_host.get()
    if asked:
        if not ctx_state.get().is_executing:
            host.log("would reboot, and wait until the host is back")
        yield Ours(_reboot, (), {})
        return
    finding = reboot_needed(state)
    if not ctx_state.get().is_executing:
        for line in text([finding], hosts=False, paint=paint).splitlines():
            host.log(line)
    yield failing([f"{finding.observed}: {finding.remedy}"])


def _reboot(state: State, host: Host) -> bool:
    known = memory(host)
    try:
        locks.take(host)
        before = ask(host, program, RebootRequest(), str, timeout=60)
        # Not held over the reboot: nobody else could tell it from a run that died.
        locks.release(host)
        host.log("rebooting")
        _wait(host, before)
    except HostError as error:
        return fail(state, host, str(error).splitlines())
    known.changes.append("rebooted")
    known.failure = None
    asked, known.observation = known.asked, None
    if asked:
        observe_anew(host, asked)
    return True


def _wait(host: Host, before: str) -> None:
    """Until the host answers from another boot. Raises HostError."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        gevent.sleep(_PAUSE)
        try:
            if host.connected:
                host.disconnect()
            host.connect(show_errors=False)
            if host.connected and state_of(host, BootstrapRequest()).boot != before:
                return
        except (HostError, OSError, EOFError):
            continue
    raise HostError(
        f"the host is not back {_SECONDS / 60:.0f} minutes after its reboot: look at its console"
    )
