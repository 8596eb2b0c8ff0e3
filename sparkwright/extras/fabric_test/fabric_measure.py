"""Measure the fabric from this host. The program runs as root, and changes nothing on the host."""

import json
import re
import time
from pathlib import Path

from sparkwright.host.lib import docker, icmp, memory, records
from sparkwright.host.lib.processes import Running, run


@records.dataclass(frozen=True)
class Stream:
    """An ``ib_write_bw`` process; a process without an address is the listening side."""

    device: str
    port: int
    address: str = ""


@records.dataclass(frozen=True)
class Gather:
    """A rank of an all-gather through an image.

    Attributes:
        script: text of the Python program that each rank runs in the image.
        size: bytes that every rank has at the end.
        environment: the rank's variables: number, master address, interfaces and devices.
    """

    image: str
    script: str
    size: int
    environment: dict[str, str]


@records.dataclass(frozen=True)
class MeasureRequest:
    """Measurements to take. ``listen`` starts the listening side, and does not wait for its end."""

    pings: tuple[icmp.Ping, ...] = ()
    listen: tuple[Stream, ...] = ()
    write: tuple[Stream, ...] = ()
    gather: Gather | None = None


@records.dataclass(frozen=True)
class Measurement:
    """A measurement of this host.

    Attributes:
        test: ``ping``, ``ib_write_bw`` or ``all-gather``.
        value: bytes of a ping, Gb/s of a stream, or GB/s of bus bandwidth as in nccl-tests.
        backend: backend of an all-gather.
        fault: cause of the failure.
    """

    test: str
    device: str = ""
    address: str = ""
    value: float | None = None
    backend: str = ""
    fault: str = ""


@records.dataclass(frozen=True)
class MeasureAnswer:
    """Completed measurements."""

    measured: tuple[Measurement, ...] = ()


#: Seconds until a stream without a client ends, and seconds for a stream to measure.
_LISTEN, _WRITE = 60, 45
#: Seconds until the other side listens.
_READY = 1.5
#: Seconds for the ranks of an all-gather to find each other and to measure.
_GATHER = 180
_CONTAINER = "sparkwright-fabric-test"
_INFINIBAND = Path("/dev/infiniband")
#:  65536      5000             92.57              92.57              0.176563
_BANDWIDTH = re.compile(r"^ *\d+ +\d+ +[\d.]+ +([\d.]+) +[\d.]+ *$", re.MULTILINE)


def main(request: MeasureRequest) -> MeasureAnswer:
    """Carry out the measurements of a request."""
    for stream in request.listen:
        listen(stream)
    pings = [
        Measurement("ping", each.device, each.address, each.size,
                    fault=icmp.echo(each.address, each.device, each.size))
        for each in request.pings
    ]  # fmt: skip
    gathers = [gather(request.gather)] if request.gather else []
    return MeasureAnswer((*pings, *write(request.write), *gathers))


def command(stream: Stream) -> list[str]:
    """Command line of a stream; the address, if any, is last."""
    arguments = ["ib_write_bw", "-d", stream.device, "-i", "1", "-p", str(stream.port), "-F"]
    return list(filter(None, [*arguments, "--report_gbits", stream.address]))


def listen(stream: Stream) -> None:
    """Start the listening side, which ends by itself."""
    name = f"fabric-test-{stream.port}.service"
    run("systemctl", "stop", name, timeout=20)
    run("systemd-run", "--quiet", "--collect", f"--unit={name}",
        f"--property=RuntimeMaxSec={_LISTEN}", *command(stream), timeout=20)  # fmt: skip


def write(streams: tuple[Stream, ...]) -> list[Measurement]:
    """Write over all streams at once."""
    if streams:
        time.sleep(_READY)
    running = [(stream, Running(*command(stream), timeout=_WRITE)) for stream in streams]
    measured = []
    for stream, process in running:
        outcome = process.outcome()
        rate = _BANDWIDTH.search(outcome.out) if outcome.ok else None
        gbits, problem = (float(rate[1]), "") if rate else (None, outcome.message or "no answer")
        twin = stream.device, stream.address
        measured.append(Measurement("ib_write_bw", *twin, gbits, fault=problem))
    return measured


def gather(rank: Gather) -> Measurement:
    """Run this host's rank of an all-gather in the image."""
    available, needed = memory.meminfo().get("MemAvailable", 0), 4 * rank.size
    problem = ""
    if docker.get(f"/images/{rank.image}/json") is None:
        problem = f"{rank.image} is not on this host: deploy first"
    elif available < needed:
        problem = (f"{available / 2**30:.1f} GiB of memory are available, and the test needs "
                   f"{needed / 2**30:.1f}: stop the service first")  # fmt: skip
    if problem:
        return Measurement("all-gather", fault=problem)
    run("docker", "rm", "--force", _CONTAINER, timeout=60)
    done = run(*container(rank), timeout=_GATHER)
    if done.code is None:
        run("docker", "rm", "--force", _CONTAINER, timeout=60)
    lines = [line for line in done.out.splitlines() if line.startswith("{")]
    try:
        result = json.loads(lines[-1]) if lines else {}
        gbytes, backend = float(result["gbytes"]), str(result["backend"])
        return Measurement("all-gather", value=gbytes, backend=backend)
    except (ValueError, KeyError, TypeError):
        return Measurement("all-gather", fault=done.message or "the rank printed nothing")


def container(rank: Gather) -> list[str]:
    """Command line of docker, with the rights of a service's rank and no further rights."""
    arguments = [
        *("docker", "run", "--rm", "--name", _CONTAINER, "--network", "host", "--ipc", "host"),
        *("--cap-drop", "ALL", "--cap-add", "IPC_LOCK", "--security-opt", "no-new-privileges"),
        *("--ulimit", "memlock=-1", "--pids-limit", "4096", "--gpus", "all"),
        *(("--device", str(_INFINIBAND)) if _INFINIBAND.is_dir() else ()),
    ]
    for name, value in rank.environment.items():
        arguments += ["--env", f"{name}={value}"]
    return [*arguments, "--entrypoint", "python3", rank.image, "-c", rank.script, str(rank.size)]
