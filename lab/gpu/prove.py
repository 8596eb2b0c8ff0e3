"""`python -m lab.gpu.prove STEP...`: what a real GPU shows, by the roles, as result files.

Run by `start.sh run`. Each step writes `.gpu/results/STEP.json` with the command, day, GPU, driver
and versions, and raw texts beside it. Seconds are those of one H100, 16 cores:

    deploy     from a bare host to answers, then again             5 min
    captures   nvidia-smi, doctor, top and status, idle and busy   1 min
    boots      restart of the unit, docker restart                 3 min
    proxy      streams through HAProxy and at the engine's socket  2 min
    killed     EngineCore is killed under load                     1 min
    share      a release that asks for more memory than is free    3 min
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import fleet
from lab.gpu.layout import VERSION
from lab.layout import GPU_HOSTS

HOST, SERVICE, MODEL, PORT = GPU_HOSTS[0], "qwen3", "lab-qwen3", 8000
RESULTS = Path(".gpu/results")
INVENTORY = "inventory/gpu.py"
SOCKET = f"/run/sparkwright-engines/{SERVICE}/http.sock"
UNIT = f"sparkwright-{SERVICE}"
RECORD = Path(".sparkwright/last-run.json")
DEPLOY = ["pyinfra", "--yes", INVENTORY, "deploy.py"]
SMI = {
    "plain": "nvidia-smi",
    "xml": "nvidia-smi -q -x",
    "q": "nvidia-smi -q",
    "identity": "nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total,index,uuid"
    " --format=csv,noheader,nounits",
    "load": "nvidia-smi --query-gpu=name,driver_version,temperature.gpu,power.draw,utilization.gpu,"
    "clocks.sm,clocks.max.sm,clocks_event_reasons.active,memory.total,memory.used"
    " --format=csv,noheader,nounits",
    "holders": "nvidia-smi --query-compute-apps=process_name,used_gpu_memory --format=csv,noheader",
}
#: Streams, rounds, tokens, and how often each way is asked in turn.
LEVELS = ((1, 40, 2, 3), (1, 6, 128, 3), (8, 4, 128, 3), (64, 3, 128, 3), (256, 2, 128, 3))


def ssh(command: str, *, stdin: str | None = None, seconds: float = 300) -> str:
    """Run a command on the host as root; returns all that it prints."""
    arguments = [*fleet.ssh_command(HOST), f"sudo sh -c '{command}'"]
    done = subprocess.run(arguments, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=seconds, check=False)  # fmt: skip
    return done.stdout


def control(*arguments: str, timed: bool = False, **variables: str) -> tuple[int, str, float]:
    """Run a command of the controller: exit code, output, seconds. Timed: those of each line."""
    started, lines = time.monotonic(), []
    record = {"SPARKWRIGHT_RECORD": str(RECORD.resolve()), **variables}
    with subprocess.Popen(arguments, env={**os.environ, **record}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            lines.append(f"{time.monotonic() - started:6.1f} {line}" if timed else line)
    return process.returncode, "".join(lines), round(time.monotonic() - started, 1)


def text(name: str, content: str) -> None:
    """Keep a raw text beside the results."""
    (RESULTS / name).write_text(content)


def journal(name: str) -> str:
    """Keep what the unit has printed since its last start."""
    lines = ssh(f"journalctl --all -u {UNIT} -o short-unix --no-pager | tail -n 1500")
    text(name, lines)
    return lines


def run_deploy(name: str, **variables: str) -> dict[str, Any]:
    """One deploy: exit code, seconds, and the record that it leaves."""
    RECORD.unlink(missing_ok=True)
    code, output, seconds = control(*DEPLOY, timed=True, **variables)
    text(f"{name}.txt", output)
    print(output[-2500:], flush=True)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    text(f"{name}-record.json", json.dumps(record, indent=1))
    hosts = record.get("hosts", [])
    return {"code": code, "seconds": seconds, "executions": sum(row["executions"] for row in hosts),
            "changes": sum(len(row["changes"]) for row in hosts),
            "refused": [row["host"] for row in hosts if row["refused"]]}  # fmt: skip


def deploy() -> dict[str, Any]:
    """From a bare host to answers, and a second run."""
    first = run_deploy("deploy-first")
    journal("first-start.log")
    second = run_deploy("deploy-second")
    return {"first": first, "second": second}


def _captures(kind: str) -> dict[str, Any]:
    for name, command in SMI.items():
        text(f"smi-{kind}-{name}.txt", ssh(command))
    result: dict[str, Any] = {}
    for name, arguments in {
        "status": ["sparkwright", "status", INVENTORY, "--json"],
        "doctor": ["sparkwright", "doctor", INVENTORY, "--json"],
        "top": ["sparkwright", "top", INVENTORY, "--once"],
    }.items():
        code, output, seconds = control(*arguments)
        text(f"{name}-{kind}.txt", output)
        result[name] = {"code": code, "seconds": seconds}
    ssh("systemctl start sparkwright-watch.service")
    text(f"watch-{kind}.json", ssh("cat /opt/sparkwright/state/watch.json"))
    return result


def captures() -> dict[str, Any]:
    """Outputs of nvidia-smi and our commands, for an idle host and for a host with 64 streams."""
    idle = _captures("idle")
    load = subprocess.Popen([*fleet.ssh_command(HOST), _streams(SOCKET, 64, 4, 512)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert load.stdin
    load.stdin.write(Path("lab/gpu/streams.py").read_text())
    load.stdin.close()
    time.sleep(4)
    busy = _captures("busy")
    text("metrics-busy.txt", ssh(f"curl -s --unix-socket {SOCKET} http://localhost/metrics"))
    load.wait()
    code, output, seconds = control("sparkwright", "smoke", INVENTORY, "--json")
    text("smoke.txt", output)
    return {"idle": idle, "busy": busy, "smoke": {"code": code, "seconds": seconds}}


def _streams(target: str, streams: int, rounds: int, tokens: int) -> str:
    key = Path(".sparkwright/api_key").read_text().strip()
    if target.startswith("/"):  # the proxy shows the engine a key of the host's own
        key = ssh("cat /opt/sparkwright/gateway/engine.map").split()[-1]
    return f"sudo env KEY={key} MODEL={MODEL} python3 - {target} {streams} {rounds} {tokens}"


def proxy() -> dict[str, Any]:
    """Streams by HAProxy and at the engine's socket, in turns, both asked on the host itself."""
    program, result = Path("lab/gpu/streams.py").read_text(), []
    for streams, rounds, tokens, turns in LEVELS:
        for turn in range(turns):
            for way, target in (("engine", SOCKET), ("proxy", f"127.0.0.1:{PORT}")):
                arguments = [*fleet.ssh_command(HOST), _streams(target, streams, rounds, tokens)]
                done = subprocess.run(arguments, input=program, capture_output=True, text=True,
                                      timeout=300, check=False)  # fmt: skip
                if done.returncode != 0:
                    raise SystemExit(f"{way}: {done.stdout}{done.stderr}"[-1500:])
                result.append({"way": way, "turn": turn, **json.loads(done.stdout)})
                print(result[-1], flush=True)
    return {"runs": result}


def _until_well(seconds: float = 600) -> None:
    ssh(f"timeout {seconds:.0f} sh -c \"until curl -fs -m 2 -o /dev/null --unix-socket {SOCKET} "
        "http://localhost/health; do sleep 0.1; done\"", seconds=seconds + 10)  # fmt: skip


def _timed(command: str) -> float:
    """Seconds from a command to the first 200 of /health."""
    started = time.monotonic()
    ssh(command)
    _until_well()
    return round(time.monotonic() - started, 2)


def boots() -> dict[str, Any]:
    """Seconds to /health of a unit's restart and of `docker restart`; logs have the phases."""
    home = f"/opt/sparkwright/services/{SERVICE}"
    result = {"systemctl restart": [_timed(f"systemctl restart {UNIT}")]}
    journal("second-start.log")
    # Under the unit a restarted container ends Compose: a container by hand, that keeps everything.
    ssh(f"systemctl stop {UNIT}")
    result["by hand"] = [_timed(f"cd {home}/current && docker compose up --detach --pull never")]
    result["docker restart"] = [_timed(f"docker restart --time 60 {UNIT}")]
    text("docker-restart.log", ssh(f"docker logs -t --tail 300 {UNIT} 2>&1"))
    ssh(f"cd {home}/current && docker compose down --volumes; systemctl reset-failed {UNIT}")
    result["systemctl start"] = [_timed(f"systemctl start {UNIT}")]
    return {"to_health": {name: seconds[0] for name, seconds in result.items()}}


def share() -> dict[str, Any]:
    """A release that asks for 0.995 of the GPU, which CUDA refuses: taken back, and why."""
    before = ssh("readlink /opt/sparkwright/services/qwen3/current").strip()
    changed = json.dumps({"gpu_memory_utilization": 0.995})
    run = run_deploy("share", LAB_GPU_ARGUMENTS=changed)
    journal("share.log")
    after = ssh("readlink /opt/sparkwright/services/qwen3/current").strip()
    code, output, _ = control("sparkwright", "status", INVENTORY)
    return {"run": run, "before": before, "after": after, "status": {"code": code, "text": output}}


def killed() -> dict[str, Any]:
    """EngineCore is killed while 8 streams run: exit code, and seconds until it serves again."""
    load = subprocess.Popen([*fleet.ssh_command(HOST), _streams(SOCKET, 8, 40, 512)],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    assert load.stdin
    load.stdin.write(Path("lab/gpu/streams.py").read_text())
    load.stdin.close()
    time.sleep(3)
    ssh("date +%s.%N >/run/lab-killed; pkill -KILL -f VLLM::EngineCor[e]")
    time.sleep(3)
    state = ssh(f"systemctl show {UNIT} -p ActiveState,SubState,NRestarts,ExecMainStatus")
    seconds = _timed("true")
    journal("killed.log")
    code, output, _ = control("sparkwright", "doctor", INVENTORY, "--json")
    text("doctor-killed.txt", output)
    load.terminate()
    return {"state after 3 s": state.split(), "seconds to health": seconds + 3, "doctor": code,
            "killed at": ssh("cat /run/lab-killed").strip()}  # fmt: skip


STEPS = {step.__name__: step for step in (deploy, captures, proxy, boots, killed, share)}


def main(names: list[str]) -> int:
    """Take the steps, in the order given."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names or list(STEPS):
        started = time.monotonic()
        try:
            result: Mapping[str, Any] = STEPS[name]()
        except (SystemExit, Exception) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        gpu, _, driver, *_ = ssh(SMI["identity"]).strip().split(", ")
        head = {
            "step": name,
            "command": f"lab/gpu/start.sh run python -m lab.gpu.prove {name}",
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "gpu": gpu,
            "driver": driver,
            "engine": f"vLLM {VERSION}",
            "seconds": round(time.monotonic() - started, 1),
        }
        text(f"{name}.json", json.dumps({**head, **result}, indent=1) + "\n")
        print(f"== {name}: {head['seconds']} s {result.get('error', '')}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
