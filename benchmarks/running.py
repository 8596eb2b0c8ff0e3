"""Run commands, and measure their elapsed time and the load of the controller."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Folder of results and of files for measurements: inventories, variables.
WORK = Path(".sparkwright/benchmark")
#: Number of deploys with changes before a deploy without changes is expected.
TRIES = 4


@dataclass(frozen=True)
class Cost:
    """Cost of one run.

    Attributes:
        seconds: elapsed seconds.
        cpu: seconds of CPU, user and system, of the controller's process.
        peak: largest resident size of the controller's process, in megabytes.
    """

    seconds: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Checkout:
    """A checkout of sparkwright, with the checkout's own environment, if any."""

    folder: Path

    @property
    def pyinfra(self) -> Path:
        """The checkout's pyinfra, or pyinfra of this process's environment."""
        own = self.folder.absolute() / ".venv/bin/pyinfra"
        return own if own.exists() else Path(sys.executable).with_name("pyinfra")

    def deploy(
        self,
        inventory: Path,
        hosts: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Cost:
        """Deploy the site to these hosts, by default to all, and return the cost without changes.

        A run with changes is repeated and not counted: another checkout may have changed the host.
        """
        options = [word for host in hosts for word in ("--limit", host)]
        command = [str(self.pyinfra), "--yes", *options, str(inventory.resolve()), "deploy.py"]
        changes: list[str] = []
        for _ in range(TRIES):
            cost = run(command, environment or {}, self.folder)
            changes = [change for host in self.last_run() for change in host["changes"]]
            if not changes:
                return cost
        raise SystemExit(f"{self.folder}: run {TRIES} still made changes: {changes}")

    def sparkwright(self, *arguments: str) -> Cost:
        """Run a sparkwright command of the checkout."""
        return run([str(self.pyinfra.with_name("sparkwright")), *arguments], {}, self.folder)

    def last_run(self) -> list[dict[str, Any]]:
        """Record of the checkout's last run, by host."""
        record = json.loads((self.folder / ".sparkwright/last-run.json").read_text())
        hosts: list[dict[str, Any]] = record["hosts"]
        return hosts


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path = Path()) -> Cost:
    """Run a command, which must succeed."""
    # Python keeps compiled files for every alternative, as on a user's machine.
    inherited = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{output.read()[-6000:]}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.peak for cost in costs),
    )


def write_inventory(
    name: str, groups: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]]
) -> Path:
    """An inventory file with these hosts, by group."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"{name}.py"
    path.write_text(
        "".join(
            f"{group} = {[(host, dict(data)) for host, data in hosts]!r}\n"
            for group, hosts in groups.items()
        )
    )
    return path
