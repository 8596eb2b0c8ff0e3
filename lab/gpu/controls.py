"""Controls of the lab of real GPUs: commands on its hosts and its controller, and stored results.

Raw texts and results are in `.gpu/results`. The settings in `.gpu/settings.json` override the
settings in `inventory/gpu.py`, so that a step can deploy with other settings.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from lab import fleet
from lab.layout import GPU_HOSTS, Machine

#: The first host of this lane (`start.sh lane`).
FIRST = int(os.environ.get("LAB_GPU_FIRST", "1"))
HOST, SECOND = GPU_HOSTS[FIRST - 1 : FIRST + 1]
SERVICE, MODEL, PORT = "qwen3", "lab-qwen3", 8000
RESULTS, SETTINGS = Path(".gpu/results"), Path(".gpu/settings.json")
INVENTORY = "inventory/gpu.py"
SOCKET = f"/run/sparkwright-engines/{SERVICE}/http.sock"
UNIT = f"sparkwright-{SERVICE}"
HOME = f"/opt/sparkwright/services/{SERVICE}"
RECORD = Path(".sparkwright/last-run.json")
RECIPE = "lab-qwen3-8b-h200"
HELD = "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"


def ssh(command: str, *, host: Machine = HOST, seconds: float = 300) -> str:
    """Run a command on a host as root; return all its output."""
    arguments = [*fleet.ssh_command(host), f"sudo sh -c '{command}'"]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          check=False)  # fmt: skip
    return done.stdout


def control(*arguments: str, timed: bool = False) -> tuple[int, str, float]:
    """Run a command of the controller: exit code, output, seconds.

    With ``timed``, each line of the output begins with the seconds since the start.
    """
    started, lines = time.monotonic(), []
    variables = {**os.environ, "SPARKWRIGHT_RECORD": str(RECORD.resolve())}
    with subprocess.Popen(arguments, env=variables, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            lines.append(f"{time.monotonic() - started:6.1f} {line}" if timed else line)
    return process.returncode, "".join(lines), round(time.monotonic() - started, 1)


def text(name: str, content: str) -> str:
    """Store a raw text beside the results."""
    (RESULTS / name).write_text(content)
    return content


def journal(name: str) -> str:
    """Store the last lines of the unit's journal."""
    return text(name, ssh(f"journalctl --all -u {UNIT} -o short-unix --no-pager | tail -n 1500"))


def service(recipe: str = RECIPE, **changed: Any) -> dict[str, Any]:
    """The settings of a service."""
    return {"recipe": recipe, "port": PORT, "boot_seconds": 300, **changed}


def deploy(name: str, services: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """One deploy with these settings: exit code, seconds, executions, changes, refused hosts."""
    services = {SERVICE: service()} if services is None else services
    SETTINGS.write_text(json.dumps({"services": services, **settings}))
    RECORD.unlink(missing_ok=True)
    code, output, seconds = control("pyinfra", "--yes", INVENTORY, "deploy.py", timed=True)
    text(f"{name}.txt", output)
    print(output[-2500:], flush=True)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    text(f"{name}-record.json", json.dumps(record, indent=1))
    hosts = record.get("hosts", [])
    return {"code": code, "seconds": seconds, "executions": sum(row["executions"] for row in hosts),
            "changes": sum(len(row["changes"]) for row in hosts),
            "outcomes": [item["outcome"] for row in hosts for item in row["services"]],
            "refused": {row["host"]: row["refused"] for row in hosts
                        if row["refused"]}}  # fmt: skip


def base() -> None:
    """Deploy the planned base release, unless it serves: a step must not spoil the next step."""
    SETTINGS.write_text(json.dumps({"services": {SERVICE: service()}}))
    code, output, _ = control("sparkwright", "status", INVENTORY)
    if code != 0 or "as planned" not in output:
        deploy("base")


def doctor(name: str) -> dict[str, Any]:
    """Run ``doctor``, store its output, and return its exit code and duration in seconds."""
    code, output, seconds = control("sparkwright", "doctor", INVENTORY, "--json")
    text(f"doctor-{name}.txt", output)
    return {"code": code, "seconds": seconds}


def until_well(seconds: float = 300) -> None:
    """Wait for the first 200 of /health."""
    ssh(f"timeout {seconds:.0f} sh -c \"until curl -fs -m 2 -o /dev/null --unix-socket {SOCKET} "
        "http://localhost/health; do sleep 0.1; done\"", seconds=seconds + 10)  # fmt: skip


def timed(action: Callable[[], object]) -> float:
    """Seconds from the start of an action to the first 200 of /health after the action."""
    started = time.monotonic()
    action()
    until_well()
    return round(time.monotonic() - started, 2)


def streams(target: str, count: int, rounds: int, tokens: int) -> dict[str, Any]:
    """Request streams on the host: at the engine's socket, or at ADDRESS:PORT."""
    key = Path(".sparkwright/api_key").read_text().strip()
    if target.startswith("/"):  # the proxy sends the host's own key to the engine
        key = ssh("cat /opt/sparkwright/gateway/engine.map").split()[-1]
    command = f"sudo env KEY={key} MODEL={MODEL} python3 - {target} {count} {rounds} {tokens}"
    done = subprocess.run([*fleet.ssh_command(HOST), command], capture_output=True, text=True,
                          input=Path("lab/gpu/streams.py").read_text(), timeout=300,
                          check=False)  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{target}: {done.stdout}{done.stderr}"[-1500:])
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def in_turns(ways: Mapping[str, str], levels: tuple[tuple[int, ...], ...]) -> list[dict[str, Any]]:
    """Streams at each target alternately, for each level: streams, rounds, tokens, turns."""
    result = []
    for count, rounds, tokens, turns in levels:
        for turn in range(turns):
            for way, target in ways.items():
                run = {"way": way, "turn": turn, **streams(target, count, rounds, tokens)}
                result.append(run)
                print(run, flush=True)
    return result


def beside(action: Callable[[], object]) -> Thread:
    """Run an action beside the following code, which joins the returned thread."""
    thread = Thread(target=action, daemon=True)
    thread.start()
    return thread
