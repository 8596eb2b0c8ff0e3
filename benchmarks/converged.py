"""How long the full site takes when nothing has to change, against the alternatives.

    make bench            (or: python -m benchmarks.converged --rounds 5)

On 1 and on 4 hosts of the virtual fleet, in turns, so that noise of the machine meets all alike:
sparkwright; the same deploy on pyinfra's stock connection; the same tasks as stock pyinfra
operations; the same tasks as an Ansible playbook. Reported are medians and ratios of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

from lab import fleet, stand_ins
from lab.holding import held
from lab.layout import HOSTS

MACHINES = {host.name: host for host in HOSTS}
ROOT = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
WORK = Path(".sparkwright/benchmark")
#: Calls hopper-1 rtx-2: for this measurement it gets the stand-in of an RTX 5090.
INVENTORY = "benchmarks/inventory.py"
ANSIBLE = "ansible-core==2.18.6"


def main() -> int:
    """Converge once, then measure in turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=WORK / "converged.json")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    fleet.up()
    ansible = _ansible()
    fourth = MACHINES["hopper-1"]
    (fourth.root / stand_ins.GPU_FILE).write_text(stand_ins.gpu_file("rtx5090"))
    try:
        results = _measure(ansible, arguments.rounds)
    finally:
        (fourth.root / stand_ins.GPU_FILE).write_text(stand_ins.gpu_file("h200"))
    arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _measure(ansible: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Medians by number of hosts and by tool."""
    results: dict[str, dict[str, float]] = {}
    for hosts in (["spark-1"], ["spark-1", "spark-2", "rtx-1", "rtx-2"]):
        limit = [word for host in hosts for word in ("--limit", host)]
        deploy = [str(BIN / "pyinfra"), "--yes", *limit, INVENTORY, "deploy.py"]
        subprocess.run(deploy, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        variables = WORK / "variables.json"
        variables.write_text(json.dumps(_variables(hosts)))
        variables.chmod(0o600)
        stock = [str(BIN / "pyinfra"), "--yes", *limit, INVENTORY]
        alternatives: dict[str, tuple[list[str], dict[str, str]]] = {
            "sparkwright": (deploy, {}),
            "sparkwright on pyinfra's stock connection": (
                deploy,
                {"SPARKWRIGHT_STOCK_CONNECTION": "1"},
            ),
            "stock pyinfra operations": (
                [*stock, str(ROOT / "alternatives/stock_pyinfra.py")],
                {"STOCK_VARIABLES": str(variables.resolve())},
            ),
            "Ansible": (
                _playbook(ansible, hosts),
                {"ANSIBLE_PIPELINING": "True", "ANSIBLE_HOST_KEY_CHECKING": "False"},
            ),
        }
        seconds: dict[str, list[float]] = {name: [] for name in alternatives}
        for _ in range(rounds):
            for name, (command, environment) in alternatives.items():
                seconds[name].append(_time(command, environment))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        results[f"{len(hosts)} host{'s' if len(hosts) > 1 else ''}"] = medians
        _print(len(hosts), medians, _executions())
    return results


def _time(command: list[str], environment: dict[str, str]) -> float:
    # As on a user's machine: Python keeps what it compiled, for all alternatives alike.
    inherited = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    started = time.monotonic()
    done = subprocess.run(
        command, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    if done.returncode != 0:
        raise SystemExit(f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return seconds


def _executions() -> dict[str, int]:
    last = json.loads(Path(".sparkwright/last-run.json").read_text())
    return {row["host"]: row["executions"] for row in last["hosts"]}


def _print(hosts: int, medians: dict[str, float], executions: dict[str, int]) -> None:
    ours = medians["sparkwright"]
    print(f"\n{hosts} host(s), nothing to change, remote executions per host: {executions}")
    for name, median in medians.items():
        print(f"  {name:44} {median:7.2f} s   sparkwright = {ours / median:5.2f} x")


def _variables(hosts: list[str]) -> dict[str, Any]:
    """What the alternatives are to find, from what the last run put there."""
    last = json.loads(Path(".sparkwright/last-run.json").read_text())
    key = Path(".sparkwright/api_key").read_text().strip()
    variables = {}
    for row in last["hosts"]:
        (service,) = row["services"]
        home = "/opt/sparkwright/services/qwen36"
        ssh = ["ssh", *_ssh_options(), f"spark@{service['address'].split(':')[0]}"]
        read = [*ssh, "sudo", "cat"]
        variables[row["host"]] = {
            "models": [
                f"/opt/models/{name.replace('/', '--')}/{commit}"
                for name, commit in service["models"].items()
            ],
            "image": service["image"],
            "release": service["release"],
            "compose": _output([*read, f"{home}/releases/{service['release']}/compose.yaml"]),
            "unit": _output([*read, "/etc/systemd/system/sparkwright-qwen36.service"]),
            "key": key,
            "ansible_host": service["address"].split(":")[0],
        }
    return {host: variables[host] for host in hosts}


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _ssh_options() -> list[str]:
    state = "/var/lib/sparkwright-lab/ssh"
    return ["-i", f"{state}/id_ed25519", "-o", f"UserKnownHostsFile={state}/known_hosts"]


def _playbook(ansible: Path, hosts: list[str]) -> list[str]:
    inventory = WORK / "ansible.json"
    variables = json.loads((WORK / "variables.json").read_text())
    inventory.write_text(json.dumps({"all": {"hosts": {host: variables[host] for host in hosts}}}))
    inventory.chmod(0o600)
    options = f"--ssh-common-args={' '.join(_ssh_options())}"
    playbook = str(ROOT / "alternatives/ansible/site.yaml")
    return [str(ansible), "-i", str(inventory), "-u", "spark", options, playbook]


def _ansible() -> Path:
    """ansible-playbook from a venv of its own: it is no dependency of the project."""
    home = WORK / "ansible-venv"
    program = home / "bin/ansible-playbook"
    if not program.exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", ANSIBLE], check=True)
    return program.resolve().parent / program.name


if __name__ == "__main__":
    with held("bench: converged"):
        sys.exit(main())
