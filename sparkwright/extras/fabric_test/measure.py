"""Measurements of `sparkwright fabric test`, planned from the state of the hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_interface
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwright.checks.fabric.groups import MTU, Fabric
from sparkwright.extras.fabric_test import fabric_measure
from sparkwright.extras.fabric_test.fabric_measure import (
    Gather,
    MeasureAnswer,
    Measurement,
    MeasureRequest,
    Stream,
)
from sparkwright.host.fabric import Rail
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.ranks.collective import NoFabric, collective_environment, entrance

if TYPE_CHECKING:
    from sparkwright.run.session import Session
    from sparkwright.run.state import HostRun

#: Seconds: an all-gather has three minutes, and Docker one for what was left of another.
_SECONDS = 330
#: Ports of the first stream, one more for its twin; and of the all-gather's meeting.
_WRITE_PORT, _GATHER_PORT = 12000, 29555
#: Bytes that each rank has at the end: enough for the rate, and little beside a service.
SIZE = 1 << 30


@dataclass(frozen=True)
class Pair:
    """Two hosts that write to each other, over both twins at once."""

    server: str
    client: str
    listen: tuple[Stream, ...]
    write: tuple[Stream, ...]


@dataclass(frozen=True)
class Plan:
    """Plan of a test: pings by host, pairs one after the other, a rank of a gather by host."""

    pings: dict[str, tuple[Ping, ...]] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    gathers: dict[str, Gather] = field(default_factory=dict)


def plan(fabric: Fabric, images: Mapping[str, str], tools: Mapping[str, bool]) -> Plan:
    """Plan the measurements on a fabric.

    Args:
        images: host -> name of the image that it serves with.
        tools: host -> whether ib_write_bw is installed there.
    """
    hosts = list(fabric.states)
    pings = {
        host: tuple(
            Ping(_number(theirs), mine.name, max(mine.mtu, MTU) - 28)
            for other in hosts
            if other != host
            for mine, theirs in _joined(fabric, host, other)
        )
        for host in hosts
    }
    # Each cable of a ring, else each host and the next.
    neighbours = pairwise([*hosts, hosts[0]] if fabric.shape == "ring" else hosts)
    pairs = (
        _pair(fabric, server, client)
        for server, client in neighbours
        if tools.get(server) and tools.get(client)
    )
    return Plan(
        {host: each for host, each in pings.items() if each},
        tuple(pair for pair in pairs if pair.write),
        _gathers(fabric, images),
    )


def _joined(fabric: Fabric, host: str, other: str) -> list[tuple[Rail, Rail]]:
    """Rails of two hosts that are in one network."""
    return [
        (mine, theirs)
        for mine in fabric.used[host]
        for theirs in fabric.used[other]
        if mine.ipv4 and theirs.ipv4
        and ip_interface(mine.ipv4).network == ip_interface(theirs.ipv4).network
    ]  # fmt: skip


def _pair(fabric: Fabric, server: str, client: str) -> Pair:
    both = [
        (mine.rdma.name, theirs.rdma.name, _number(mine))
        for mine, theirs in _joined(fabric, server, client)
        if mine.rdma and theirs.rdma
    ]
    return Pair(
        server,
        client,
        tuple(Stream(device, port) for port, (device, _, _) in enumerate(both, _WRITE_PORT)),
        tuple(
            Stream(device, port, address)
            for port, (_, device, address) in enumerate(both, _WRITE_PORT)
        ),
    )


def _gathers(fabric: Fabric, images: Mapping[str, str]) -> dict[str, Gather]:
    hosts = list(fabric.states)
    if len(hosts) < 2 or any(host not in images for host in hosts):
        return {}
    try:
        variables = {
            host: collective_environment(state, fabric.shape, ranks=len(hosts))
            for host, state in fabric.states.items()
        }
    except NoFabric:
        return {}
    script = Path(__file__).with_name("all_gather.py").read_text(encoding="utf-8")
    _, master = entrance(fabric.states[hosts[0]], fabric.shape)
    return {
        host: Gather(
            images[host], script, rank, len(hosts), master, _GATHER_PORT, SIZE, variables[host]
        )
        for rank, host in enumerate(hosts)
    }


def _number(rail: Rail) -> str:
    """A rail's IPv4 address without its prefix length: nothing but a number, as it is a word of a
    command on another host."""
    return str(ip_interface(str(rail.ipv4)).ip)


def measured(session: Session, plans: Sequence[Plan]) -> dict[str, tuple[Measurement, ...]]:
    """Measure in turn: pings side by side, then pair after pair, then the all-gathers.

    Fabrics are measured side by side, since no two share a host. A step that a host does not
    answer is missing in its answer.
    """
    answers: dict[str, tuple[Measurement, ...]] = {}

    def step(requests: Mapping[str, MeasureRequest]) -> None:
        question = partial(fabric_measured, requests=requests)
        for name, answer in session.ask(question, only=requests).answers.items():
            answers[name] = (*answers.get(name, ()), *answer.measured)

    step(
        {host: MeasureRequest(pings=pings) for plan in plans for host, pings in plan.pings.items()}
    )
    for pair in (pair for plan in plans for pair in plan.pairs):
        step({pair.server: MeasureRequest(listen=pair.listen)})
        step({pair.client: MeasureRequest(write=pair.write)})
    step(
        {host: MeasureRequest(gather=rank) for plan in plans for host, rank in plan.gathers.items()}
    )
    return answers


def fabric_measured(
    host: Any, run: HostRun, *, requests: Mapping[str, MeasureRequest]
) -> MeasureAnswer:
    """A host's measures. One remote execution."""
    from sparkwright.facts.asking import ask

    return ask(host, fabric_measure, requests[run.name], MeasureAnswer, timeout=_SECONDS)
