"""Time of the full site without pending changes, compared with the alternatives.

    make bench            (or: python -m benchmarks.converged --rounds 5)
    make bench BEFORE=../other-checkout

The benchmark runs these ways on 1 and on 4 hosts of the virtual fleet, and on 1 host over a
connection delayed by 20 ms, alternately, so that noise of the machine affects all ways equally:
sparkwright; another checkout of sparkwright, if named; the same deploy on pyinfra's stock
connection; the same tasks as stock pyinfra operations; the same tasks as an Ansible playbook (not
over the delayed connection). The alternatives get digests and commits as input, so sparkwright
reads them from its lock. The output has medians and ratios of one run.
"""

import argparse
import json
import runpy
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import relay
from benchmarks.running import WORK, Checkout, Cost, median, run, write_inventory
from lab import fakes, fleet
from lab.holding import held
from lab.layout import HOSTS, SSH

MACHINES = {host.name: host for host in HOSTS}
ROOT = Path(__file__).resolve().parent
OURS = Checkout(Path())
#: hopper-1 becomes rtx-2: for this measurement it gets the fake of an RTX 5090.
INVENTORY = ROOT / "inventory.py"
STOCK = ROOT / "alternatives/stock_pyinfra.py"
ANSIBLE = "ansible-core==2.18.6"
ONE = ("spark-1",)
FOUR = ("spark-1", "spark-2", "rtx-1", "rtx-2")
_VARIABLES = WORK / "variables.json"
#: Name of the row for the start of pyinfra alone, without planning or connecting.
START = "pyinfra --version"
LOCK = "lock_file=.sparkwright/virtual.lock"
#: Round trip of the delayed connection, in seconds.
ROUND_TRIP = 0.02

#: Alternatives with the same work, by name; each call is one run.
Ways = dict[str, Callable[[], Cost]]


def main() -> int:
    """Converge once, then measure alternately."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--output", type=Path, default=WORK / "converged.json")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    fleet.up()
    ansible = _ansible()
    others = {}
    if arguments.before:
        others[f"sparkwright of {arguments.before}"] = Checkout(arguments.before)
    for checkout in (OURS, *others.values()):
        checkout.sparkwright("lock", "inventory/virtual.py", "--data", LOCK)
    fourth = MACHINES["hopper-1"]
    (fourth.root / fakes.GPU_FILE).write_text(fakes.gpu_file("rtx5090"))
    try:
        results = _measure(ansible, others, arguments.rounds)
    finally:
        (fourth.root / fakes.GPU_FILE).write_text(fakes.gpu_file("h200"))
    arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _measure(
    ansible: Path, others: dict[str, Checkout], rounds: int
) -> dict[str, dict[str, float]]:
    """Medians in seconds by case and alternative."""
    results = {}
    for title, hosts in (("1 host", ONE), ("4 hosts", FOUR)):
        OURS.deploy(INVENTORY, hosts)
        _keep_variables(hosts)
        ways = {**_with_pyinfra(INVENTORY, hosts, others), "Ansible": _ansible_way(ansible, hosts)}
        results[title] = _in_turns(title, ways, rounds)
    _keep_variables(ONE)
    with _far_inventory(ONE[0]) as far:
        title = f"1 host, {ROUND_TRIP * 1000:.0f} ms away"
        results[title] = _in_turns(title, _with_pyinfra(far, ONE, others), rounds)
    return results


def _with_pyinfra(inventory: Path, hosts: Sequence[str], others: dict[str, Checkout]) -> Ways:
    # One key for all checkouts, so that no checkout must install its own.
    key = {"SPARKWRIGHT_API_KEY": Path(".sparkwright/api_key").read_text().strip()}
    limit = [word for host in hosts for word in ("--limit", host)]
    # Stock operations run in a folder without config.py, which would plan the run and speed up its
    # connections.
    groups = runpy.run_path(str(inventory))
    alone = write_inventory(
        "stock", {group: groups[group] for group in ("sparks", "rtx50") if group in groups}
    )
    stock = [str(OURS.pyinfra.absolute()), "--yes", *limit, str(alone.resolve()), str(STOCK)]
    return {
        "sparkwright": partial(OURS.deploy, inventory, hosts, key),
        "sparkwright on pyinfra's stock connection": partial(
            OURS.deploy, inventory, hosts, {**key, "SPARKWRIGHT_STOCK_CONNECTION": "1"}
        ),
        "stock pyinfra operations": partial(
            run, stock, {"STOCK_VARIABLES": str(_VARIABLES.resolve())}, alone.parent
        ),
        # Other checkouts run last: this checkout reverts their changes before the next measurement.
        **{name: partial(other.deploy, inventory, hosts, key) for name, other in others.items()},
    }


def _ansible_way(ansible: Path, hosts: Sequence[str]) -> Callable[[], Cost]:
    environment = {"ANSIBLE_PIPELINING": "True", "ANSIBLE_HOST_KEY_CHECKING": "False"}
    return partial(run, _playbook(ansible, hosts), environment)


def _in_turns(title: str, ways: Ways, rounds: int) -> dict[str, float]:
    """Print and return medians in seconds, by alternative."""
    # The cost of every pyinfra run before it reads a file.
    ways = {**ways, START: partial(run, [str(OURS.pyinfra), "--version"], {})}
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            costs[name].append(way())
    medians = {name: median(runs) for name, runs in costs.items()}
    own = medians["sparkwright"]
    executions = {host["host"]: host["executions"] for host in OURS.last_run()}
    print(f"\n{title}, no pending changes, remote executions per host: {executions}")
    for name, cost in medians.items():
        print(
            f"  {name:44} {cost.seconds:7.2f} s   sparkwright = {own.seconds / cost.seconds:5.2f} x"
            f"   CPU {cost.cpu:5.2f} s, sparkwright = {own.cpu / cost.cpu:5.2f} x",
            flush=True,
        )
    return {name: cost.seconds for name, cost in medians.items()}


@contextmanager
def _far_inventory(host: str) -> Iterator[Path]:
    """An inventory with one host behind a delayed connection."""
    machine = MACHINES[host]
    near: dict[str, Any] = dict(runpy.run_path("inventory/virtual.py")["sparks"])[host]
    with relay.line(machine.address, 22, ROUND_TRIP) as port:
        expected = WORK / "far_known_hosts"
        keys = (line.split(" ", 1) for line in (SSH / "known_hosts").read_text().splitlines())
        expected.write_text(
            "".join(f"[127.0.0.1]:{port} {key}\n" for name, key in keys if name == machine.address)
        )
        far = {"ssh_hostname": "127.0.0.1", "ssh_port": port}
        far["ssh_known_hosts_file"] = str(expected.resolve())
        yield write_inventory("far", {"sparks": [(host, {**near, **far})]})


def _keep_variables(hosts: Sequence[str]) -> None:
    """Write the alternatives' expected state, from the last run's files."""
    key = Path(".sparkwright/api_key").read_text().strip()
    variables = {}
    for row in OURS.last_run():
        if row["host"] not in hosts:
            continue
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
            "secrets": _output([*read, f"{home}/secrets.env"]),
            "key": key,
            "ansible_host": service["address"].split(":")[0],
        }
    _VARIABLES.touch(0o600)
    _VARIABLES.write_text(json.dumps(variables))


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _ssh_options() -> list[str]:
    state = "/var/lib/sparkwright-lab/ssh"
    return ["-i", f"{state}/id_ed25519", "-o", f"UserKnownHostsFile={state}/known_hosts"]


def _playbook(ansible: Path, hosts: Sequence[str]) -> list[str]:
    inventory = WORK / "ansible.json"
    variables = json.loads(_VARIABLES.read_text())
    inventory.write_text(json.dumps({"all": {"hosts": {host: variables[host] for host in hosts}}}))
    inventory.chmod(0o600)
    options = f"--ssh-common-args={' '.join(_ssh_options())}"
    playbook = str(ROOT / "alternatives/ansible/site.yaml")
    return [str(ansible), "-i", str(inventory), "-u", "spark", options, playbook]


def _ansible() -> Path:
    """ansible-playbook from a separate venv: Ansible is not a dependency of the project."""
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
