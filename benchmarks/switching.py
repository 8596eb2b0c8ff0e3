"""Downtime of a host during a switch, compared with `docker stop` + `docker run`.

    make bench-switching      (or: python -m benchmarks.switching --rounds 5)

On one virtual host, the benchmark alternates between a new tag deployed by `pyinfra` and the same
container started by hand as on the cards. /health of both containers is polled from outside every
10 ms; the downtime lasts from the last 200 before the switch to the first 200 after the switch. The
fake boots in about a second and a real engine in minutes, so the output has the difference in
seconds besides the ratio: the difference does not grow with the engine's start.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from lab import fleet, machines
from lab.holding import held
from lab.layout import HOSTS

HOST = HOSTS[0]
TAGS = ("2026-06-18-v0.23.0-dflashfix", "2026-07-01-v0.24.0")
HOME = "/opt/sparkwright/services/qwen36"
NAME = "by-hand"
#: The services have no proxy: with a proxy, the proxy's view of their health would be measured.
SERVICES = json.dumps(
    {
        "qwen36": {
            "recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8000,
            "proxy": False, "bind": "0.0.0.0",
            "silenced": {"open-routes": "a virtual host, to be measured from outside"},
        }
    }
)  # fmt: skip
BIN = Path(sys.executable).parent


class Watch:
    """Poll of /health until stopped; the longest time without a 200 is the downtime."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        last = time.monotonic()
        while not self._stop.is_set():
            connection = http.client.HTTPConnection(HOST.address, 8000, timeout=1)
            try:
                connection.request("GET", "/health")
                well = connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                well = False
            finally:
                connection.close()
            now = time.monotonic()
            if well:
                self.longest = max(self.longest, now - last)
                last = now
            time.sleep(0.01)


def main() -> int:
    """Measure and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    fleet.up()
    ours: list[float] = []
    hand: list[float] = []
    deploy(TAGS[1])
    for number in range(rounds):
        ours.append(_ours(TAGS[number % 2]))
        hand.append(_by_hand())
    mine, other = statistics.median(ours), statistics.median(hand)
    print(f"{'sparkwright, a new tag':34}{mine:7.2f} s")
    print(f"{'docker stop + docker run':34}{other:7.2f} s")
    print(f"ratio {mine / other:.2f}, difference {mine - other:+.2f} s")
    for boot in (30, 180):
        ratio = (mine + boot) / (other + boot)
        print(f"with {boot} s more for the engine's start: ratio {ratio:.3f}")
    Path(".sparkwright/benchmark").mkdir(parents=True, exist_ok=True)
    result = {"sparkwright": ours, "docker": hand}
    Path(".sparkwright/benchmark/switching.json").write_text(json.dumps(result) + "\n")
    return 0


def deploy(tag: str, services: str = SERVICES) -> None:
    """Deploy these services with a tag."""
    done = subprocess.run(
        [
            *(BIN / "pyinfra", "--yes", "--limit", HOST.name, "--data", f'image_tag="{tag}"'),
            *("--data", 'rollout={"soak_seconds": 0}', "--data", f"services={services}"),
            *("inventory/virtual.py", "deploy.py"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])


def _ours(tag: str) -> float:
    with Watch() as watch:
        deploy(tag)
    return watch.longest


def _by_hand() -> float:
    """Start the same container as on the cards, stop the container, and start it a second time."""
    compose = yaml.safe_load(machines.inside(HOST, ["cat", f"{HOME}/current/compose.yaml"]).stdout)
    arguments = docker_run(compose["services"]["engine"])
    _inside("systemctl", "stop", "sparkwright-qwen36")
    try:
        _inside(*arguments)
        _until_well()
        with Watch() as watch:
            time.sleep(0.2)
            _inside("sh", "-c", f"docker stop {NAME} && docker rm {NAME} && {_shell(arguments)}")
            _until_well()
    finally:
        _inside("docker", "rm", "-f", NAME)
        _inside("systemctl", "start", "sparkwright-qwen36")
        _until_well()
    return watch.longest


def docker_run(service: dict[str, Any]) -> list[str]:
    """Arguments of `docker run` for the container of a compose file, with the host's network."""
    arguments = ["docker", "run", "-d", "--name", NAME, "--network", "host", "--ipc", "host"]
    arguments += ["--gpus", "all", "--entrypoint", service["entrypoint"][-1]]
    arguments += ["--env-file", f"{HOME}/secrets.env"]
    for name, value in service.get("environment", {}).items():
        arguments += ["-e", f"{name}={value}"]
    for mount in (item for item in service["volumes"] if item["target"].startswith("/models")):
        arguments += ["-v", f"{mount['source']}:{mount['target']}:ro"]
    return [*arguments, service["image"], *service["command"]]


def _shell(arguments: list[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in arguments)


def _inside(*arguments: str) -> None:
    done = machines.inside(HOST, list(arguments))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")


def _until_well() -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection(HOST.address, 8000, timeout=1)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
    raise SystemExit("the service did not become healthy in 2 minutes")


if __name__ == "__main__":
    with held("bench: switching"):
        sys.exit(main())
