"""Measures the fabric from this host. Runs as root; nothing of the host is changed."""

from __future__ import annotations

import json
import re
import tempfile
import time
from pathlib import Path

from sparkwright.host.contracts.fabric import Ping
from sparkwright.host.contracts.fabric_measure import (
    Gather,
    Gathered,
    MeasureAnswer,
    MeasureRequest,
    Pinged,
    Stream,
    Written,
)
from sparkwright.host.lib import docker, icmp, memory
from sparkwright.host.lib.processes import Running, run

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
    for one in request.listen:
        listen(one)
    return MeasureAnswer(
        tuple(map(ping, request.pings)),
        write(request.write),
        gather(request.gather) if request.gather else None,
    )


def ping(one: Ping) -> Pinged:
    """Whether an address answers to packets that fill the MTU."""
    return Pinged(one.address, one.device, one.size, icmp.echo(one.address, one.device, one.size))


def command(one: Stream) -> list[str]:
    """The words of a stream; the address last, where there is one."""
    words = ["ib_write_bw", "-d", one.device, "-i", "1", "-p", str(one.port), "-F",
             "--report_gbits"]  # fmt: skip
    return [*words, one.address] if one.address else words


def listen(one: Stream) -> None:
    """Start the side that listens; it ends by itself."""
    name = f"fabric-test-{one.port}.service"
    run("systemctl", "stop", name, timeout=20)
    run("systemd-run", "--quiet", "--collect", f"--unit={name}",
        f"--property=RuntimeMaxSec={_LISTEN}", *command(one), timeout=20)  # fmt: skip


def write(streams: tuple[Stream, ...]) -> tuple[Written, ...]:
    """Write over all streams at once."""
    if streams:
        time.sleep(_READY)
    running = [(one, Running(*command(one), timeout=_WRITE)) for one in streams]
    found = []
    for one, process in running:
        outcome = process.outcome()
        rate = _BANDWIDTH.search(outcome.out)
        if outcome.ok and rate:
            found.append(Written(one.device, one.address, float(rate[1])))
        else:
            found.append(Written(one.device, one.address, wrong=outcome.said or "no answer"))
    return tuple(found)


def gather(asked: Gather) -> Gathered:
    """Run this host's rank of an all-gather in the image."""
    if docker.get(f"/images/{asked.image}/json") is None:
        return Gathered(wrong=f"{asked.image} is not on this host: deploy first")
    available = memory.meminfo().get("MemAvailable", 0)
    if available < 4 * asked.size:
        return Gathered(wrong=f"{available / 2**30:.1f} GiB of memory are available, and it takes "
                              f"{4 * asked.size / 2**30:.1f}: stop the service first")  # fmt: skip
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
        said = json.loads(lines[-1]) if lines else {}
        return Gathered(float(said["gbytes"]), str(said["backend"]))
    except (ValueError, KeyError, TypeError):
        return Gathered(wrong=done.said or "the rank said nothing")


def container(asked: Gather, script: str) -> list[str]:
    """docker's words: what a rank of a service has, and no more."""
    variables = {
        **asked.environment,
        "RANK": str(asked.rank),
        "WORLD_SIZE": str(asked.ranks),
        "MASTER_ADDR": asked.master,
        "MASTER_PORT": str(asked.port),
    }
    words = ["docker", "run", "--rm", "--name", _CONTAINER, "--network", "host", "--ipc", "host",
             "--cap-drop", "ALL", "--cap-add", "IPC_LOCK", "--security-opt", "no-new-privileges",
             "--ulimit", "memlock=-1", "--pids-limit", "4096", "--gpus", "all"]  # fmt: skip
    if _INFINIBAND.is_dir():
        words += ["--device", str(_INFINIBAND)]
    for name, value in variables.items():
        words += ["--env", f"{name}={value}"]
    words += ["--volume", f"{script}:/sparkwright/all_gather.py:ro", "--entrypoint", "python3"]
    return [*words, asked.image, "/sparkwright/all_gather.py", str(asked.size)]
