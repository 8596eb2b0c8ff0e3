"""Load of hosts, again and again: one remote execution a look, on the host's one connection."""

import time
from collections.abc import Callable

import gevent
from pyinfra.api.host import Host

from sparkwright.engines import metric_names
from sparkwright.facts import hooks
from sparkwright.facts.asking import HostError, Sudo, ask
from sparkwright.facts.memory import memory
from sparkwright.host import load
from sparkwright.host.load import HostLoad, LoadRequest
from sparkwright.plan.service import own_address
from sparkwright.run.state import HostRun

#: Seconds for one look: nvidia-smi has 10, and each service's metrics have 5.
_LOOK = 20


def follow(
    host: Host,
    run: HostRun,
    take: Callable[[HostLoad | HostError], None],
    *,
    interval: float,
    count: int = 0,
) -> None:
    """Look at a host until the command ends.

    Args:
        take: gets each look, or why there was none.
        interval: seconds between two looks.
        count: of looks; 0 is without end.

    Raises:
        HostError: when the last look had no answer.
    """
    request = LoadRequest(
        services={
            service.name: (own_address(service), service.port)
            for service in run.desired.plan.services
            if not service.follower
        },
        watch=f"{run.settings.services_root}/watch/config.json",
        state=f"{run.settings.services_root}/state",
        metric_names=metric_names(),
    )
    looks = 0
    while True:
        began = time.monotonic()
        looks += 1
        try:
            take(_look(host, request))
        except HostError as error:
            take(error)
            if looks == count:
                raise
        if looks == count:
            return
        gevent.sleep(max(0.0, began + interval - time.monotonic()))


def _look(host: Host, request: LoadRequest) -> HostLoad:
    transport = hooks.transport_of(host)
    if transport is not None and not transport.is_active():
        host.disconnect()  # a connection that is lost stays so
    if not host.connected:
        host.connect(show_errors=False)
    if not host.connected:
        raise HostError(memory(host).failure or "not reached")
    memory(host).failure = None
    return ask(
        host, load, request, HostLoad,
        sudo=Sudo.UNNEEDED, timeout=_LOOK, secrets=False,
    )  # fmt: skip
