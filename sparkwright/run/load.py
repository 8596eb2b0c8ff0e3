"""What hosts do now, again and again: one remote execution a look, on the host's one connection."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import gevent
from pyinfra.api.host import Host

from sparkwright.engines import metric_names
from sparkwright.facts import hooks
from sparkwright.facts.asking import HostError, Sudo, ask
from sparkwright.facts.memory import memory
from sparkwright.host import load
from sparkwright.host.lib.records import encode
from sparkwright.host.load import HostLoad, LoadRequest
from sparkwright.plan.service import own_address
from sparkwright.run.state import HostRun, run_of

#: Seconds for one look: nvidia-smi has 10, and each service's metrics have 5.
_LOOK = 20


def followed(host: Host, one: HostRun, *, feed: int, interval: float, count: int) -> bool:
    """Look at a host, and feed what it does to the command line.

    Args:
        feed: descriptor that gets lines: ``{"host": …}`` of each host of the run, then
            ``{"host": …, "load": …}`` or ``{"host": …, "silent": why}``. Whoever reads it
            ends this by closing it.
        count: of looks; 0 is without end.

    Raises:
        HostError: when the last look had no answer.
    """
    for other in run_of(host).hosts.values():
        why = other.memory.failure
        _feed(feed, {"host": other.name, **({"silent": why} if why is not None else {})})
    request = LoadRequest(
        services={
            service.name: (own_address(service), service.port)
            for service in one.desired.plan.services
            if not service.follower
        },
        watch=f"{one.settings.services_root}/watch/config.json",
        state=f"{one.settings.services_root}/state",
        metric_names=metric_names(),
    )
    looks = 0
    while True:
        began = time.monotonic()
        looks += 1
        try:
            _feed(feed, {"host": one.name, "load": encode(_look(host, request))})
        except HostError as error:
            _feed(feed, {"host": one.name, "silent": str(error)})
            if looks == count:
                raise
        if looks == count:
            return True
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


def _feed(feed: int, line: dict[str, Any]) -> None:
    """Whole lines, one after another: no other host's comes between."""
    data = f"{json.dumps(line)}\n".encode()
    while data:
        data = data[os.write(feed, data) :]
