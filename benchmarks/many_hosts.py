"""Cost of many unchanged hosts on the controller: CPU and memory.

    make bench            (or: python -m benchmarks.many_hosts --names 8 32 128)
    make bench BEFORE=../other-checkout

Three hosts of the virtual fleet act as many hosts: an inventory has many names for each host. The
controller treats each name as a host with its own plan and connection; without changes, the names
do not disturb each other. The hosts share this machine's cores with the controller, so only the
controller's CPU time applies to real fleets, not the elapsed time.
"""

import argparse
import json
import runpy
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.running import WORK, Checkout, Cost, median, write_inventory
from lab import fleet
from lab.holding import held

VIRTUAL = Path("inventory/virtual.py")
#: Serving hosts, with their group.
MACHINES = (("sparks", "spark-1"), ("sparks", "spark-2"), ("rtx50", "rtx-1"))


def main() -> int:
    """Measure each number of names alternately."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--names", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--output", type=Path, default=WORK / "names.json")
    arguments = parser.parse_args()
    fleet.up()
    checkouts = {"sparkwright": Checkout(Path())}
    if arguments.before:
        checkouts[f"sparkwright of {arguments.before}"] = Checkout(arguments.before)
    machines = [machine for _, machine in MACHINES]
    checkouts["sparkwright"].deploy(VIRTUAL, machines)  # the first run makes the key
    key = {"SPARKWRIGHT_API_KEY": Path(".sparkwright/api_key").read_text().strip()}
    inventories = {number: many_names(number) for number in arguments.names}
    costs: dict[str, dict[int, list[Cost]]] = {
        title: {number: [] for number in inventories} for title in checkouts
    }
    for _ in range(arguments.rounds):
        for title, checkout in checkouts.items():
            # Pending changes are made under one name: many names would disturb each other.
            checkout.deploy(VIRTUAL, machines, key)
            for number, inventory in inventories.items():
                costs[title][number].append(checkout.deploy(inventory, environment=key))
    medians = {
        title: {number: median(some) for number, some in by_number.items()}
        for title, by_number in costs.items()
    }
    for title, by_number in medians.items():
        print(f"\n{title}, no pending changes")
        print("\n".join(table(by_number)))
    arguments.output.write_text(
        json.dumps(
            {
                title: {number: asdict(cost) for number, cost in by_number.items()}
                for title, by_number in medians.items()
            },
            indent=1,
        )
        + "\n"
    )
    return 0


def many_names(number: int) -> Path:
    """An inventory of this many names, spread evenly over the machines."""
    virtual = runpy.run_path(str(VIRTUAL))
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {group: [] for group, _ in MACHINES}
    for n in range(number):
        group, machine = MACHINES[n % len(MACHINES)]
        groups[group].append((f"{machine}-{n + 1:03}", dict(virtual[group])[machine]))
    return write_inventory(f"names_{number}", groups)


def table(costs: dict[int, Cost]) -> list[str]:
    """For each number of names, a line with total cost, cost per name and per added name."""
    lines = ["  names      CPU   per name   per added name   peak memory  elapsed time"]
    before: tuple[int, Cost] | None = None
    for number, cost in sorted(costs.items()):
        more = "-"
        if before is not None:
            more = f"{(cost.cpu - before[1].cpu) / (number - before[0]):.3f} s"
        lines.append(
            f"  {number:5} {cost.cpu:6.2f} s {cost.cpu / number:8.3f} s {more:>15} "
            f"{cost.peak:10.0f} MB {cost.seconds:12.1f} s"
        )
        before = (number, cost)
    return lines


if __name__ == "__main__":
    with held("bench: names"):
        sys.exit(main())
