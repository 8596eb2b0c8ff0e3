"""Speed of fetching, compared with the internet uplink and aria2c, and for 4 and 8 hosts.

    make bench-fetching      (or: python -m benchmarks.fetching --rounds 3)

The benchmark runs on the virtual fleet. `tc` limits hub and registry together to a fixed rate (the
uplink), and every host to ten times this rate (the LAN). The bytes are counted at the depot's
network interface. The output has medians and ratios of one run.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import requests

from benchmarks import heavy
from lab import fleet, machines, network
from lab.holding import held
from lab.layout import DEPOT, HUB_PORT, MACHINES, Machine
from sparkwright.resolve.hub import resolve_model

BIN = Path(sys.executable).parent
HUB = f"http://{DEPOT.address}:{HUB_PORT}"
SPARKS = tuple(machine for machine in MACHINES if machine.name.startswith("spark-"))
WORK = Path(".sparkwright/benchmark")
#: A file system in memory, so that the speed does not depend on this machine's disk.
MEMORY = "/dev/shm"
_FETCH = Path("sparkwright/host/fetch/fetch.py")


def main() -> int:
    """Start eight Sparks, measure, and leave the fleet as `lab up` makes it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--line", type=float, default=10.0, help="rate of the internet uplink, MB/s"
    )
    parser.add_argument("--megabytes", type=int, default=500, help="size of each file for aria2c")
    parser.add_argument("--together", action="store_true", help="only with peer sharing")
    parser.add_argument("--only", choices=("fleet", "aria2c"), default=None)
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    fleet.up(tuple(machine.name for machine in SPARKS))
    results: dict[str, Any] = {}
    try:
        if arguments.only != "fleet":
            results["aria2c"] = _against_aria2c(arguments.rounds, arguments.megabytes)
        if arguments.only != "aria2c":
            heavy.weights(4, 48)
            heavy.image(96)
            results["fleet"] = _fleet(
                arguments.rounds, arguments.line, alone=not arguments.together
            )
    finally:
        for machine in SPARKS:
            network.shape(machine, None)
        network.shape(DEPOT, None)
    (WORK / "fetching.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0


# --- Peers compared with the uplink, and with many hosts


def _fleet(rounds: int, line: float, *, alone: bool) -> dict[str, Any]:
    _deploy(SPARKS[:1])  # the libraries for hosts are built once, and not measured
    network.shape(DEPOT, line)
    for machine in SPARKS:
        network.shape(machine, line * 10)
    item = _bytes()
    cases: dict[str, tuple[int, tuple[str, ...]]]
    cases = {"1 host": (1, ()), "4 hosts": (4, ()), "8 hosts": (8, ())}
    if alone:
        cases["4 hosts, each for itself"] = (4, ("--data", "peer_sharing=False"))
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    carried: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (count, arguments) in cases.items():
            _empty(SPARKS)
            before = network.sent(DEPOT)
            seconds[name].append(_deploy(SPARKS[:count], *arguments))
            carried[name].append((network.sent(DEPOT) - before) / item)
    ideal = item / (line * 1e6)
    print(f"\none copy: {item / 1e6:.0f} MB, {line:g} MB/s uplink, {ideal:.1f} s at best")
    print(f"{'':28}{'s':>7}{'/ bytes÷uplink':>14}{'/ 1 host':>10}{'copies':>12}")
    first = statistics.median(seconds["1 host"])
    result: dict[str, Any] = {"bytes": item, "line": line * 1e6}
    for name in cases:
        median, copies = statistics.median(seconds[name]), statistics.median(carried[name])
        result[name] = {"seconds": median, "copies": copies}
        print(f"{name:28}{median:7.1f}{median / ideal:14.2f}{median / first:10.2f}{copies:12.2f}")
    again = _deploy(SPARKS[:1])
    executions = _executions()
    print(f"second deploy, no changes: {again:.1f} s, remote executions: {executions}")
    return {**result, "again": {"seconds": again, "executions": executions}}


def _deploy(hosts: tuple[Machine, ...], *arguments: str) -> float:
    limit = [word for host in hosts for word in ("--limit", host.name)]
    command = [str(BIN / "pyinfra"), "--yes", *limit, *arguments]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "benchmarks/fleet_inventory.py", "benchmarks/deploy.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return time.monotonic() - started


def _executions() -> int:
    record = json.loads(Path(".sparkwright/last-run.json").read_text())
    return int(record["hosts"][0]["executions"])


def _empty(hosts: tuple[Machine, ...]) -> None:
    """Remove models and images; the fetch program stays."""
    script = (
        "systemctl stop 'sparkwright-fetch*' 'sparkwright-pull*' 'sparkwright-share*';"
        "rm -rf /opt/models/* /opt/sparkwright/images/* ; docker image prune -af >/dev/null;"
        "sync"
    )
    for host in hosts:
        machines.inside(host, ["sh", "-c", script])


def _bytes() -> int:
    """Bytes of one copy on a host: models and the image's parts."""
    (folder,) = machines.inside(SPARKS[0], ["du", "-sb", "/opt/models"]).stdout.split()[:1]
    parts = 0
    base = f"http://{DEPOT.address}:5000/v2/{heavy.IMAGE}"
    manifest = requests.get(
        f"{base}/manifests/{heavy.TAG}",
        headers={"Accept": "application/vnd.oci.image.manifest.v1+json, "
                 "application/vnd.docker.distribution.manifest.v2+json"}, timeout=30,
    ).json()  # fmt: skip
    parts = sum(layer["size"] for layer in manifest["layers"])
    return int(folder) + parts


# Against aria2c


def _against_aria2c(rounds: int, megabytes: int) -> dict[str, Any]:
    """Two large files from the same hub, fetched by this machine."""
    subprocess.run(
        ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", "aria2"],
        check=True, capture_output=True,
    )  # fmt: skip
    heavy.weights(2, megabytes)
    result: dict[str, Any] = {}
    for name, limit, line in (
        ("no limit", None, None),
        ("50 MB/s a connection", 50_000_000, None),
        ("an uplink of 1 Gbit/s", None, 125.0),
    ):
        rates: dict[str, list[float]] = {}
        _hub_rate(limit)
        network.shape(DEPOT, line)
        try:
            for _ in range(rounds):
                for who, rate in _WAYS.items():
                    rates.setdefault(who, []).append(rate())
        finally:
            _hub_rate(None)
            network.shape(DEPOT, None)
        medians = {who: statistics.median(values) for who, values in rates.items()}
        result[name] = medians
        print(f"\n{2 * megabytes / 1000:g} GB in two files, {name}:")
        for who, rate_ in medians.items():
            print(f"{who:34}{rate_ / 1e6:7.0f} MB/s{rate_ / medians['aria2c']:8.2f} x aria2c")
    return result


def _hub_rate(limit: int | None) -> None:
    requests.delete(f"{HUB}/control", timeout=10)
    if limit:
        requests.post(f"{HUB}/control", json={"match": "*", "rate": limit}, timeout=10)


def _large() -> tuple[Any, list[Any]]:
    model = resolve_model(HUB, heavy.BODY, "main", None)
    return model, [file for file in model.to_fetch if file.path.startswith("benchmark-")]


def _ours(downloader: str) -> float:
    """Bytes per second of the fetch program, which also hashes existing files."""
    model, files = _large()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        request = Path(folder, "request.json")
        request.write_text(
            json.dumps(
                {
                    "endpoint": HUB,
                    "repo": model.repository,
                    "revision": model.commit,
                    "destination": f"{folder}/models/{model.directory}",
                    "state_dir": f"{folder}/state",
                    "files": [vars(file) for file in files],
                    "downloader": downloader,
                    "max_connections": 16,
                    "headroom": 0,
                }
            )
        )
        libraries = next(Path(path) for path in sys.path if path.endswith("site-packages"))
        arguments = [sys.executable, "-I", "-S", str(_FETCH), "--runtime", str(libraries)]
        started = time.monotonic()
        subprocess.run([*arguments, str(request)], check=True, capture_output=True)
        return sum(int(file.size) for file in files) / (time.monotonic() - started)


def _aria2c(*, checksum: bool) -> float:
    """Bytes per second of aria2c, which verifies no bytes without a checksum."""
    model, files = _large()
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    base = f"{HUB}/{model.repository}/resolve/{model.commit}"
    listed = "".join(
        f"{base}/{file.path}\n out={file.path}\n"
        + (f" checksum=sha-256={file.sha256}\n" if checksum else "")
        for file in files
    )
    try:
        started = time.monotonic()
        subprocess.run(
            ["aria2c", "-x16", "-s16", "-j2", "-q", "-d", str(folder), "-i", "-"],
            input=listed, text=True, check=True, capture_output=True,
        )  # fmt: skip
        return sum(int(file.size) for file in files) / (time.monotonic() - started)
    finally:
        shutil.rmtree(folder)


_WAYS = {
    "sparkwright, hf_transfer, verified": partial(_ours, "hf_transfer"),
    "sparkwright, xet, verified": partial(_ours, "xet"),
    "sparkwright, http, verified": partial(_ours, "http"),
    "aria2c": partial(_aria2c, checksum=False),
    "aria2c, verified": partial(_aria2c, checksum=True),
}


if __name__ == "__main__":
    with held("bench: fetching"):
        sys.exit(main())
