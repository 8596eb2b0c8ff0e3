"""What `sparkwright fabric test` measures, planned from what the hosts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_interface
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from sparkwright.checks.fabric.groups import MTU, Fabric
from sparkwright.host import fabric_measure
from sparkwright.host.fabric import Rail
from sparkwright.host.fabric_measure import Gather, MeasureAnswer, MeasureRequest, Stream
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.ranks.collective import NoFabric, collective_environment, entrance

if TYPE_CHECKING:
    from sparkwright.run.session import Session

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
    """What is measured: pings by host, pairs one after the other, a rank of a gather by host."""

    pings: dict[str, tuple[Ping, ...]] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    gathers: dict[str, Gather] = field(default_factory=dict)


def plan(fabric: Fabric, images: Mapping[str, str], tools: Mapping[str, bool]) -> Plan:
    """What is measured on a fabric.

    Args:
        images: host -> name of the image that it serves with.
        tools: host -> whether ib_write_bw is installed there.
    """
    pings: dict[str, tuple[Ping, ...]] = {}
    for host in fabric.states:
        each = [
            Ping(_number(theirs), mine.name, max(mine.mtu, MTU) - 28)
            for other in fabric.states
            if other != host
            for mine, theirs in joined(fabric, host, other)
        ]
        if each:
            pings[host] = tuple(each)
    pairs = tuple(
        _pair(fabric, one, other)
        for one, other in neighbours(fabric)
        if tools.get(one) and tools.get(other)
    )
    return Plan(pings, tuple(one for one in pairs if one.write), _gathers(fabric, images))


def neighbours(fabric: Fabric) -> list[tuple[str, str]]:
    """The pairs of hosts that are measured: each cable of a ring, else each host and the next."""
    hosts = list(fabric.states)
    if fabric.shape == "ring":
        hosts.append(hosts[0])
    return [(one, other) for one, other in pairwise(hosts) if joined(fabric, one, other)]


def joined(fabric: Fabric, host: str, other: str) -> list[tuple[Rail, Rail]]:
    """Rails of two hosts that are in one network."""
    return [
        (mine, theirs)
        for mine in fabric.used[host]
        for theirs in fabric.used[other]
        if mine.ipv4 and theirs.ipv4
        and ip_interface(mine.ipv4).network == ip_interface(theirs.ipv4).network
    ]  # fmt: skip


def _pair(fabric: Fabric, server: str, client: str) -> Pair:
    both = [(mine, theirs) for mine, theirs in joined(fabric, server, client)
            if mine.rdma and theirs.rdma]  # fmt: skip
    ports = [_WRITE_PORT + number for number in range(len(both))]
    return Pair(
        server,
        client,
        tuple(Stream(mine.rdma.name, port) for port, (mine, _) in zip(ports, both, strict=True)
              if mine.rdma),
        tuple(Stream(theirs.rdma.name, port, _number(mine))
              for port, (mine, theirs) in zip(ports, both, strict=True) if theirs.rdma),
    )  # fmt: skip


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


def measured(session: Session, planned: Plan) -> dict[str, MeasureAnswer]:
    """Measure in turn: pings side by side, then pair after pair, then the all-gathers.

    A step that a host does not answer is missing in its answer, and later steps leave it out.
    """
    from sparkwright.run.session import program

    answers = {name: MeasureAnswer() for name in (*planned.pings, *planned.gathers)}

    def step(requests: Mapping[str, MeasureRequest]) -> None:
        question = program(
            fabric_measure, lambda run: requests[run.name], MeasureAnswer, timeout=_SECONDS
        )
        for name, answer in session.ask(question, only=requests).answers.items():
            before = answers.get(name, MeasureAnswer())
            answers[name] = MeasureAnswer(
                (*before.pings, *answer.pings),
                (*before.writes, *answer.writes),
                answer.gather or before.gather,
            )

    step({name: MeasureRequest(pings=pings) for name, pings in planned.pings.items()})
    for pair in planned.pairs:
        step({pair.server: MeasureRequest(listen=pair.listen)})
        step({pair.client: MeasureRequest(write=pair.write)})
    step({name: MeasureRequest(gather=gather) for name, gather in planned.gathers.items()})
    return answers


@dataclass(frozen=True)
class Published:
    """A figure that others measured, and the least that passes here."""

    what: str
    least: float
    unit: str
    said: str
    source: str


def published(shape: str) -> Iterator[Published]:
    """The figures of a shape."""
    yield Published(
        "ib_write_bw", 90.0, "Gb/s", "92 to 97 a twin", "NVIDIA/dgx-spark-playbooks (sum 189.85)"
    )
    if shape == "ring":
        yield Published("all-gather", 10.0, "GB/s", "10", "NVIDIA's pass mark for a ring")
    else:
        yield Published(
            "all-gather", 20.0, "GB/s", "20.4 to 25.7", "users; NVIDIA's pass mark is 21.875"
        )
