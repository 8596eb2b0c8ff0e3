"""Measurements of `sparkwright fabric test`, planned from the state of the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_interface
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwright.checks.fabric.groups import MTU, Fabric
from sparkwright.extras.fabric_test import fabric_measure
from sparkwright.extras.fabric_test.fabric_measure import MeasureAnswer, Measurement, MeasureRequest
from sparkwright.host.fabric import Rail
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.ranks.collective import NoFabric, collective_environment, entrance

if TYPE_CHECKING:
    from sparkwright.run.session import Session
    from sparkwright.run.state import HostRun

#: Seconds of a step: three minutes for an all-gather, and one minute for Docker to remove an older
#: container.
_SECONDS = 330
#: Port of the first stream (the second stream has the next port), and the all-gather's port.
_WRITE_PORT, _GATHER_PORT = 12000, 29555
#: Bytes of each rank at the end: enough to measure the rate, and little memory on a host with a
#: service.
SIZE = 1 << 30


@dataclass(frozen=True)
class Step:
    """A step of a fabric's test: requests to its hosts, which carry them out side by side.

    Attributes:
        test: ping, ib_write_bw or all-gather; empty for the side that listens.
        server: the host that ib_write_bw writes to.
    """

    test: str
    requests: dict[str, MeasureRequest]
    server: str = ""


#: Answers to a step, by host.
Answers = Mapping[str, Sequence[Measurement]]


def plan(fabric: Fabric, images: Mapping[str, str | None]) -> list[Step]:
    """Plan the steps: pings side by side, then pair after pair, then the all-gather.

    Args:
        images: host -> name of its serving image.
    """
    hosts = list(fabric.states)
    pings = {
        host: MeasureRequest(tuple(
            Ping(_number(theirs), mine.name, max(mine.mtu, MTU) - 28)
            for other in hosts if other != host
            for mine, theirs in _joined(fabric, host, other)
        ))
        for host in hosts
    }  # fmt: skip
    steps = [Step("ping", {host: each for host, each in pings.items() if each.pings})]
    # Pairs of hosts: each cable of a ring, otherwise each host and the next host.
    for pair in pairwise([*hosts, hosts[0]] if fabric.shape == "ring" else hosts):
        if all("ib_write_bw" in fabric.states[host].tools for host in pair):
            steps += _writing(fabric, *pair)
    steps.append(Step("all-gather", _gathers(fabric, images)))
    return [step for step in steps if step.requests]


def _joined(fabric: Fabric, host: str, other: str) -> list[tuple[Rail, Rail]]:
    """Pairs of two hosts' rails that are in one network."""
    return [
        (mine, theirs)
        for mine in fabric.used[host]
        for theirs in fabric.used[other]
        if mine.ipv4 and theirs.ipv4
        and ip_interface(mine.ipv4).network == ip_interface(theirs.ipv4).network
    ]  # fmt: skip


def _writing(fabric: Fabric, server: str, client: str) -> Iterator[Step]:
    """Plan the steps in which the client writes to the server, over both twins at once."""
    devices = [
        (mine.rdma.name, theirs.rdma.name, _number(mine))
        for mine, theirs in _joined(fabric, server, client)
        if mine.rdma and theirs.rdma
    ]
    twins = [
        (fabric_measure.Stream(mine, port), fabric_measure.Stream(theirs, port, address))
        for port, (mine, theirs, address) in enumerate(devices, _WRITE_PORT)
    ]
    if twins:
        listen, write = zip(*twins, strict=True)
        yield Step("", {server: MeasureRequest(listen=listen)})
        yield Step("ib_write_bw", {client: MeasureRequest(write=write)}, server)


def _gathers(fabric: Fabric, images: Mapping[str, str | None]) -> dict[str, MeasureRequest]:
    states = fabric.states
    image = {host: images.get(host) for host, state in states.items() if state.image}
    if len(states) < 2 or not all(map(image.get, states)):
        return {}
    first = next(iter(states.values()))
    script = Path(__file__).with_name("all_gather.py").read_text(encoding="utf-8")
    try:
        _, master = entrance(first, fabric.shape)
        meeting = {"MASTER_ADDR": master, "MASTER_PORT": str(_GATHER_PORT)}
        ranks = {
            host: {
                **collective_environment(state, fabric.shape, ranks=len(states)),
                "RANK": str(rank), "WORLD_SIZE": str(len(states)), **meeting,
            }
            for rank, (host, state) in enumerate(states.items())
        }  # fmt: skip
    except NoFabric:
        return {}
    gather = fabric_measure.Gather
    return {
        host: MeasureRequest(gather=gather(str(image[host]), script, SIZE, environment))
        for host, environment in ranks.items()
    }


def _number(rail: Rail) -> str:
    """A rail's IPv4 address without its prefix length: only a number, since it becomes an argument
    of a command on another host.
    """
    return str(ip_interface(str(rail.ipv4)).ip)


def measured(session: Session, plans: Sequence[Sequence[Step]]) -> list[list[Answers]]:
    """Carry out the steps of every plan, one after the other, and return the answers of each step.

    Fabrics are measured side by side, since no two share a host.
    """
    results: list[list[Answers]] = [[] for _ in plans]
    for steps in zip_longest(*plans):
        requests: dict[str, MeasureRequest] = {}
        for step in filter(None, steps):
            requests |= step.requests
        question = partial(fabric_measured, requests=requests)
        answers = session.ask(question, only=requests).answers
        for result in results:
            result.append({name: answer.measured for name, answer in answers.items()})
    return results


def fabric_measured(
    host: Any, run: HostRun, *, requests: Mapping[str, MeasureRequest]
) -> MeasureAnswer:
    """Measure from one host, with one remote execution."""
    from sparkwright.facts.asking import ask

    return ask(host, fabric_measure, requests[run.name], MeasureAnswer, timeout=_SECONDS)
