"""Time of a restart of the real vLLM, compared with `docker restart` of the same container.

    make bench-starting      (or: python -m benchmarks.starting --rounds 3)

The benchmark measures, on one virtual host, on the CPU, with torch.compile: a service's first
start, then alternately `systemctl restart` of its unit, which makes a new container with the first
container's caches, and `docker restart` of a container that was started by hand and keeps all its
files. The figures are seconds from the command to the first 200 of /health.

The lab's image contains its modules' bytecode; most images of vLLM contain no bytecode. "no
bytecode" is a second start of an image without bytecode and without the bytecode that sparkwright
keeps: the new container must compile the modules.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from lab import fleet, machines
from lab.holding import held
from lab.layout import DEPOT, HOSTS, REGISTRY_PORT

HOST = HOSTS[0]
HOME = "/opt/sparkwright/services/tiny"
UNIT = "sparkwright-tiny"
PORT = 8000
#: A drop-in of the unit and its additions to the compose file, without the kept bytecode.
DROP_IN = f"/run/systemd/system/{UNIT}.service.d/benchmark.conf"
OVERRIDE = "/run/sparkwright-benchmark.yaml"
NO_BYTECODE = f"""
mkdir -p {DROP_IN.rpartition("/")[0]}
printf '[Service]\nEnvironment=COMPOSE_FILE=compose.yaml:{OVERRIDE}\n' >{DROP_IN}
echo '{{services: {{vllm: {{environment: {{PYTHONPYCACHEPREFIX: /tmp/bytecode}}}}}}}}' >{OVERRIDE}
systemctl daemon-reload
"""
AS_DEPLOYED = f"rm -f {DROP_IN} {OVERRIDE}; systemctl daemon-reload"
SERVICES = json.dumps(
    {
        "tiny": {
            "recipe": "lab-tiny-qwen3-compiled", "port": PORT, "proxy": False, "bind": "0.0.0.0",
            "silenced": {"open-routes": "a virtual host, to be measured from outside"},
        }
    }
)  # fmt: skip
BIN = Path(sys.executable).parent


def main() -> int:
    """Measure and print medians and their ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds: int = parser.parse_args().rounds
    fleet.up()
    registry = f"http://{DEPOT.address}:{REGISTRY_PORT}"
    _run(sys.executable, "-m", "lab.real_engine", "push", "--registry", registry)
    _run(
        *(str(BIN / "pyinfra"), "--yes", "--limit", HOST.name, "--data", f"services={SERVICES}"),
        *("--data", "second_boot=False", "inventory/virtual.py", "deploy.py"),
    )
    kinds = ("first", "second", "no bytecode", "docker restart")
    result: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        for _ in range(rounds):
            _inside("systemctl", "stop", UNIT)
            _inside("sh", "-c", f"rm -rf {HOME}/caches/*")
            result["first"].append(_timed("systemctl", "start", UNIT))
            result["second"].append(_timed("systemctl", "restart", UNIT))
            _inside("sh", "-c", NO_BYTECODE)
            result["no bytecode"].append(_timed("systemctl", "restart", UNIT))
            _inside("sh", "-c", AS_DEPLOYED)
            _inside("systemctl", "stop", UNIT)
            _inside("sh", "-c", f"cd {HOME}/current && docker compose up --detach --pull never")
            _until_well()
            result["docker restart"].append(_timed("docker", "restart", "--time", "60", UNIT))
            _inside("sh", "-c", f"cd {HOME}/current && docker compose down --volumes")
    finally:
        _inside("sh", "-c", AS_DEPLOYED)
        _inside("systemctl", "reset-failed", UNIT)
        _inside("systemctl", "start", UNIT)
    medians = {name: statistics.median(seconds) for name, seconds in result.items()}
    for name, seconds in medians.items():
        print(f"{name:20}{seconds:7.1f} s   {medians['second'] / seconds:.2f} x")
    Path(".sparkwright/benchmark").mkdir(parents=True, exist_ok=True)
    Path(".sparkwright/benchmark/starting.json").write_text(json.dumps(result) + "\n")
    return 0


def _run(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])


def _timed(*arguments: str) -> float:
    _inside("systemctl", "reset-failed", UNIT)
    started = time.monotonic()
    _inside(*arguments)
    _until_well()
    return time.monotonic() - started


def _inside(*arguments: str) -> None:
    done = machines.inside(HOST, list(arguments))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")


def _until_well() -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection(HOST.address, PORT, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    raise SystemExit(f"{UNIT} did not become healthy in 10 minutes")


if __name__ == "__main__":
    with held("bench: starting"):
        sys.exit(main())
