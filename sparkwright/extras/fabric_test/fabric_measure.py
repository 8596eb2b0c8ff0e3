"""Measures the fabric from this host. Runs as root; nothing of the host is changed."""

from __future__ import annotations

import json
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import docker, icmp, memory
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.lib.processes import Running, run


@dataclass(frozen=True)
class Stream:
    """An ``ib_write_bw`` process; without an address it is the listening side."""

    device: str
    port: int
    address: str = ""


@dataclass(frozen=True)
class Gather:
    """A rank of an all-gather through an image.

    Attributes:
        script: text of the Python program that each rank runs in the image.
        size: bytes that every rank has at the end.
        environment: of the rank, its interfaces and devices among it.
    """

    image: str
    script: str
    rank: int
    ranks: int
    master: str
    port: int
    size: int
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasureRequest:
    """Measurements to take. ``listen`` starts the listening side and does not wait for its end."""

    pings: tuple[Ping, ...] = ()
    listen: tuple[Stream, ...] = ()
    write: tuple[Stream, ...] = ()
    gather: Gather | None = None


@dataclass(frozen=True)
class Measurement:
    """A measurement of this host.

    Attributes:
        test: ``ping``, ``ib_write_bw`` or ``all-gather``.
        value: bytes of a ping, Gb/s of a stream, or GB/s of bus bandwidth, as nccl-tests have it.
        backend: of an all-gather.
        wrong: why it failed.
    """

    test: str
    device: str = ""
    address: str = ""
    value: float | None = None
    backend: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class MeasureAnswer:
    """Measurements that were taken."""

    measured: tuple[Measurement, ...] = ()


#: Seconds until a stream that nobody comes to ends, and until one has measured.
_LISTEN, _WRITE = 60, 45
#: Seconds that the other side takes until it listens.
_READY = 1.5
#: Seconds for the ranks of an all-gather to find each other and to measure.
_GATHER = 180
_CONTAINER = "sparkwright-fabric-test"
_INFINIBAND = Path("/dev/infiniband")
#:  65536      5000             92.57              92.57              0.176563
_BANDWIDTH = re.compile(r"^ *\d+ +\d+ +[\d.]+ +([\d.]+) +[\d.]+ *$", re.MULTILINE)


def main(request: MeasureRequest) -> MeasureAnswer:
    """Measure what is asked for."""
    for stream in request.listen:
        listen(stream)
    pings = [ping(each) for each in request.pings]
    gathers = [gather(request.gather)] if request.gather else []
    return MeasureAnswer((*pings, *write(request.write), *gathers))


def ping(asked: Ping) -> Measurement:
    """Whether an address answers to packets that fill the MTU."""
    problems = icmp.echo(asked.address, asked.device, asked.size)
    return Measurement("ping", asked.device, asked.address, asked.size, wrong=problems)


def command(stream: Stream) -> list[str]:
    """The words of a stream; the address last, where there is one."""
    arguments = ["ib_write_bw", "-d", stream.device, "-i", "1", "-p", str(stream.port), "-F"]
    return list(filter(None, [*arguments, "--report_gbits", stream.address]))


def listen(stream: Stream) -> None:
    """Start the side that listens; it ends by itself."""
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
        gbits, problem = (float(rate[1]), "") if rate else (None, outcome.said or "no answer")
        measured.append(
            Measurement("ib_write_bw", stream.device, stream.address, gbits, wrong=problem)
        )
    return measured


def gather(asked: Gather) -> Measurement:
    """Run this host's rank of an all-gather in the image."""
    test = "all-gather"
    if docker.get(f"/images/{asked.image}/json") is None:
        return Measurement(test, wrong=f"{asked.image} is not on this host: deploy first")
    available = memory.meminfo().get("MemAvailable", 0)
    if available < 4 * asked.size:
        problems = (f"{available / 2**30:.1f} GiB of memory are available, and it takes "
                 f"{4 * asked.size / 2**30:.1f}: stop the service first")  # fmt: skip
        return Measurement(test, wrong=problems)
    with tempfile.TemporaryDirectory(prefix="sparkwright-fabric-") as folder:
        Path(folder).chmod(0o755)
        script = Path(folder, "all_gather.py")
        script.write_text(asked.script)
        script.chmod(0o644)
        run("docker", "rm", "--force", _CONTAINER, timeout=60)
        done = run(*container(asked, str(script)), timeout=_GATHER)
        if done.code is None:
            run("docker", "rm", "--force", _CONTAINER, timeout=60)
    lines = [line for line in done.out.splitlines() if line.startswith("{")]
    try:
        result = json.loads(lines[-1]) if lines else {}
        return Measurement(test, value=float(result["gbytes"]), backend=str(result["backend"]))
    except (ValueError, KeyError, TypeError):
        return Measurement(test, wrong=done.said or "the rank said nothing")


def container(asked: Gather, script: str) -> list[str]:
    """docker's words: what a rank of a service has, and no more."""
    variables = {
        **asked.environment,
        "RANK": str(asked.rank),
        "WORLD_SIZE": str(asked.ranks),
        "MASTER_ADDR": asked.master,
        "MASTER_PORT": str(asked.port),
    }
    arguments = [
        *("docker", "run", "--rm", "--name", _CONTAINER, "--network", "host", "--ipc", "host"),
        *("--cap-drop", "ALL", "--cap-add", "IPC_LOCK", "--security-opt", "no-new-privileges"),
        *("--ulimit", "memlock=-1", "--pids-limit", "4096", "--gpus", "all"),
    ]
    if _INFINIBAND.is_dir():
        arguments += ["--device", str(_INFINIBAND)]
    for name, value in variables.items():
        arguments += ["--env", f"{name}={value}"]
    arguments += ["--volume", f"{script}:/sparkwright/all_gather.py:ro", "--entrypoint", "python3"]
    return [*arguments, asked.image, "/sparkwright/all_gather.py", str(asked.size)]
