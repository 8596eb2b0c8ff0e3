"""A user of sparkwright: runs pyinfra as in the README, and inspects hosts over plain ssh.

Tests read a host's state by ssh, Docker and curl, never through sparkwright.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import fakes, fleet, machines
from lab.layout import DEPOT, HOSTS, HUB_PORT, REGISTRY_PORT, Machine

ROOT = Path(__file__).resolve().parents[2]
PYINFRA = Path(sys.executable).with_name("pyinfra")
MACHINES: dict[str, Machine] = {host.name: host for host in HOSTS}
GOOD = ("spark-1", "spark-2", "rtx-1")
#: A user's part of the project; the remaining files are tests and lab.
PROJECT = (
    *("catalog", "config.py", "constraints-bench.txt", "deploy.py", "group_data"),
    *("inventory", "lab/catalog", "roles", "sparkwright", "templates"),
)


#: Arguments that pin the virtual fleet.
LOCKING = (
    *("lock", "inventory/virtual.py"),
    *("--data", "lock_file=.sparkwright/virtual.lock"),
)


@dataclass(frozen=True)
class Run:
    """One run of pyinfra: exit code, all output, and its record."""

    code: int
    output: str
    record: dict[str, Any]

    def host(self, name: str) -> dict[str, Any]:
        """The record of one host."""
        row: dict[str, Any] = next(row for row in self.record["hosts"] if row["host"] == name)
        return row

    @property
    def refused(self) -> set[str]:
        """Hosts that are not as planned."""
        return {row["host"] for row in self.record["hosts"] if row["refused"]}

    @property
    def changed(self) -> set[str]:
        """Hosts with at least one change."""
        return {row["host"] for row in self.record["hosts"] if row["changes"]}


class Site:
    """A checkout with its own API key and records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in PROJECT:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        self._hurry()
        cache = ROOT / ".sparkwright/cache"
        if cache.is_dir():  # the bundles for hosts are made only once
            shutil.copytree(cache, folder / ".sparkwright/cache")

    def _hurry(self) -> None:
        """Watch a release for a second instead of a minute, and drain a service without an
        earlier 503 to its load balancer.
        """
        with (self.folder / "group_data/all.py").open("a") as settings:
            settings.write('rollout = {"soak_seconds": 1, "notice_seconds": 0, "batch": "100%"}\n')

    @property
    def key(self) -> str:
        """The fleet's API key."""
        return (self.folder / ".sparkwright/api_key").read_text().strip()

    def command(
        self,
        *arguments: str,
        inventory: str = "inventory/virtual.py",
        deploy: str = "deploy.py",
    ) -> list[str]:
        """The command line of a run."""
        return [str(PYINFRA), *arguments, inventory, deploy]

    def only_fetching(self) -> str:
        """A user's own deploy file, with all steps up to the services."""
        text = (ROOT / "deploy.py").read_text()
        lines = [line for line in text.splitlines() if line not in ("serving()", "smoke()")]
        (self.folder / "fetch-deploy.py").write_text("\n".join(lines))
        return "fetch-deploy.py"

    def changing(self, change: str, arguments: str = "") -> str:
        """A deploy file with one change of a command (``run/changes.py``)."""
        (self.folder / f"{change}.py").write_text(
            "from pyinfra.context import ctx_host\n"
            f"from sparkwright.run.changes import {change}\n"
            "from sparkwright.run.state import host_run\n"
            "host = ctx_host.get()\n"
            "if run := host_run(host):\n"
            f"    {change}(host, run, {{}}, {arguments})\n"
        )
        return f"{change}.py"

    def run(
        self,
        *arguments: str,
        inventory: str = "inventory/virtual.py",
        deploy: str = "deploy.py",
        **environment: str,
    ) -> Run:
        """Run pyinfra to its end."""
        record = self.folder / ".sparkwright/last-run.json"
        record.unlink(missing_ok=True)
        done = subprocess.run(
            self.command(*arguments, inventory=inventory, deploy=deploy),
            cwd=self.folder,
            # A dry run leaves no record without this variable.
            env={**os.environ, "SPARKWRIGHT_RECORD": str(record), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )
        ours = [line for line in done.stdout.splitlines() if "journal:" not in line]
        assert not any("Traceback" in line for line in ours), done.stdout
        data = json.loads(record.read_text()) if record.exists() else {"hosts": []}
        return Run(done.returncode, done.stdout, data)

    def deploy(
        self,
        *arguments: str,
        refused: set[str] | None = None,
        inventory: str = "inventory/virtual.py",
        deploy: str = "deploy.py",
    ) -> Run:
        """Run for real and expect exactly these hosts to be refused."""
        run = self.run("--yes", *arguments, inventory=inventory, deploy=deploy)
        assert run.refused == (refused or set()), run.output
        assert run.code == (1 if refused else 0), run.output
        return run

    def start(
        self, *arguments: str, inventory: str = "inventory/virtual.py", deploy: str = "deploy.py"
    ) -> subprocess.Popen[bytes]:
        """Start a run that the test will interrupt."""
        return subprocess.Popen(
            self.command("--yes", *arguments, inventory=inventory, deploy=deploy),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def edit(self, file: str, old: str, new: str) -> None:
        """Change a file of the checkout as a user would."""
        path = self.folder / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new))

    def restore(self, file: str) -> None:
        """Undo the change of ``edit``."""
        shutil.copy(ROOT / file, self.folder / file)

    def repair(self) -> None:
        """Undo the changes of a failed test to settings and machines."""
        self.reset()
        for name in MACHINES:
            self.gpu(name)

    def reset(self) -> None:
        """Undo the changes of the site's files."""
        for name in ("group_data", "inventory", "catalog", "templates"):
            shutil.rmtree(self.folder / name)
            shutil.copytree(ROOT / name, self.folder / name)
        self._hurry()

    def power_on(self) -> None:
        """Start every machine that is down."""
        fleet.up()

    def gpu(self, host: str, mode: str = "ok", kind: str | None = None) -> None:
        """Set the mode of a machine's fake GPU, and its kind if it differs."""
        machine = MACHINES[host]
        assert machine.gpu is not None
        text = fakes.gpu_file(kind or machine.gpu, mode)
        (machine.root / fakes.GPU_FILE).write_text(text)

    def rollout(self, **settings: object) -> None:
        """Set the order of a roll-out, as a user would."""
        file = self.folder / "group_data/all.py"
        lines = [line for line in file.read_text().splitlines() if not line.startswith("rollout")]
        values = {"soak_seconds": 1, "notice_seconds": 0, **settings}
        file.write_text("\n".join([*lines, f"rollout = {values!r}", ""]))

    def call(self, *arguments: str, timeout: int = 300) -> subprocess.CompletedProcess[str]:
        """Run a command of the command line, with any exit code."""
        return subprocess.run(
            [sys.executable, "-m", "sparkwright", *arguments],
            cwd=self.folder, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def sparkwright(self, *arguments: str, code: int = 0) -> str:
        """Run a command that must exit with this code, and return its output."""
        done = self.call(*arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def ssh(host: str, command: str, seconds: float = 60) -> str:
    """Output of a command on a host; the command must succeed."""
    done = subprocess.run(
        [*fleet.ssh_command(MACHINES[host]), command],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{host}: {command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def inside(host: str, *command: str) -> str:
    """Output of a command as root and without SSH, for tests without SSH."""
    done = machines.inside(MACHINES[host], list(command))
    assert done.returncode == 0, f"{host}: {command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


#: Command that queries a service's engine past its proxy; a path follows.
ENGINE = "sudo curl -s --unix-socket /run/sparkwright-engines/qwen36/http.sock http://engine"


def all_bare(site: Site) -> None:
    """Power on the fleet, undo a test's changes, and restore every host."""
    site.power_on()
    site.repair()
    for host in GOOD:
        bare(host)


def bare(host: str) -> None:
    """Restore a host's state before its first run."""
    ssh(
        host,
        "sudo systemctl disable --now sparkwright-qwen36 sparkwright-gateway sparkwright-health"
        " sparkwright-watch.timer sparkwright-watch.service"
        " sparkwright-wake.socket sparkwright-wake.service"
        " sparkwright-models.socket sparkwright-models.service"
        " 2>/dev/null;"
        " sudo systemctl stop 'sparkwright-fetch*' 'sparkwright-pull*' 'sparkwright-share*'"
        " 2>/dev/null;"
        " sudo rm -rf /opt/sparkwright /opt/models /etc/systemd/system/sparkwright-*"
        " /etc/systemd/system/*.wants/sparkwright-*;"
        # systemd does not load a failed unit whose file was removed and restored (EBUSY).
        " sudo systemctl reset-failed 'sparkwright-*'; sudo systemctl daemon-reload;"
        " docker rm -f sparkwright-qwen36 >/dev/null 2>&1;"
        " docker image prune -af >/dev/null",
    )


def hub(method: str, path: str = "/control", order: dict[str, Any] | None = None) -> dict[str, Any]:
    """Set a fault of the lab's hub, clear all faults, or read its counters."""
    connection = http.client.HTTPConnection(DEPOT.address, HUB_PORT, timeout=10)
    try:
        connection.request(method, path, json.dumps(order) if order else None)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return dict(json.loads(text)) if text else {}
    finally:
        connection.close()


def push_engine(*options: str) -> None:
    """Push a real engine for the CPU to the lab's registry."""
    registry = f"http://{DEPOT.address}:{REGISTRY_PORT}"
    command = [sys.executable, "-m", "lab.real_engine", "push", *options, "--registry", registry]
    subprocess.run(command, cwd=ROOT, check=True)


def without_engine(host: str) -> None:
    """Remove the real engine's service from a host, and all other files of sparkwright."""
    # An engine that became healthy a moment ago may use up Docker's whole time limit.
    stop = "sudo systemctl disable --now sparkwright-tiny; docker rm -f sparkwright-tiny || true"
    ssh(host, stop, 120)
    bare(host)


def release(host: str, service: str = "qwen36") -> str:
    """Release of the running container, according to Docker."""
    form = '{{if .State.Running}}{{index .Config.Labels "sparkwright.release"}}{{end}}'
    return ssh(host, f"docker inspect -f '{form}' sparkwright-{service}")


def answers(site: Site, host: str, port: int = 8000) -> bool:
    """Whether a service generates tokens."""
    body = {"model": "qwen36-fast", "prompt": "1 2 3", "max_tokens": 4}
    key = f"Authorization: Bearer {site.key}"
    text = ssh(
        host,
        f"curl -s -m 20 http://127.0.0.1:{port}/v1/completions -H '{key}'"
        f" -H 'Content-Type: application/json' -d '{json.dumps(body)}'",
    )
    return bool(json.loads(text)["usage"]["completion_tokens"])


def container(host: str, service: str = "qwen36") -> str:
    """Id of the running container of a service."""
    return ssh(host, f"docker inspect -f '{{{{.Id}}}}' sparkwright-{service}")


def fingerprint(host: str) -> str:
    """Every file, link and unit that a run could have touched on a host, with its content.

    Files that the watch writes every minute are left out.
    """
    places = "/opt /etc/systemd/system /etc/docker"
    listing = ssh(
        host,
        f"sudo find {places} -printf '%p %m %u %s %T@ %l\\n' 2>/dev/null"
        " | grep -vE '/sparkwright/(state |state/[.]?watch[.]json|watch/metrics[ /])' | sort",
    )
    docker = ssh(host, "docker ps -aq --no-trunc; docker images -q --no-trunc | sort")
    listed = "systemctl list-units --all --plain --no-legend 'sparkwright*'"
    # Print fields without padding: the width of columns varies from call to call.
    units = ssh(host, f"{listed} | grep -v watch | awk '{{print $1, $2, $3, $4}}'")
    return f"{listing}\n{docker}\n{units}"


def units(host: str) -> str:
    """Units of sparkwright that are active on a host, according to systemd."""
    return machines.inside(
        MACHINES[host], ["systemctl", "list-units", "--no-legend", "sparkwright*"]
    ).stdout


def until(condition: Any, reason: str, seconds: float = 60) -> None:
    """Wait for a condition that must become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {reason}"
        time.sleep(0.05)
