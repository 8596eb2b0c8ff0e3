"""Roll-outs on a real GPU: releases that fail, and a release whose failure nobody notices. See
`lab.gpu.prove`.
"""

import base64
import time
from pathlib import Path
from typing import Any

from lab.gpu.controls import (
    HOME,
    HOST,
    INVENTORY,
    RECIPE,
    SERVICE,
    SOCKET,
    control,
    deploy,
    journal,
    service,
    ssh,
    text,
)
from lab.gpu.up import up
from tests.fleet.load import Load

#: Share of the GPU for each of two hosts that have the same one.
HALF = {"gpu_memory_utilization": 0.42}
BALANCER = 8080


def _taken_back(name: str, recipe: str = RECIPE, **changed: Any) -> dict[str, Any]:
    before = ssh(f"readlink {HOME}/current").strip()
    run = deploy(name, {SERVICE: service(recipe, **changed)})
    journal(f"{name}.log")
    after = ssh(f"readlink {HOME}/current").strip()
    code, output, _ = control("sparkwright", "status", INVENTORY)
    text(f"{name}-status.txt", output)
    return {"run": run, "before": before, "after": after, "status": code}


def share() -> dict[str, Any]:
    """A release that asks for 0.995 of the GPU, which CUDA refuses: taken back, and why."""
    return _taken_back("share", arguments={"gpu_memory_utilization": 0.995})


def noise() -> dict[str, Any]:
    """A release whose weights are noise: it starts, and says nonsense."""
    return _taken_back("noise", "lab-noise-h200")


def dies() -> dict[str, Any]:
    """A release whose worker dies five seconds after each start."""
    kill = (
        f"before=$(readlink {HOME}/current); "
        f"until [ $(readlink {HOME}/current) != $before ]; do sleep 0.2; done; "
        "for turn in 1 2 3 4; do "
        f"[ $(readlink {HOME}/current) = $before ] && exit; "
        f"until curl -fs -m 2 -o /dev/null --unix-socket {SOCKET} http://localhost/health; "
        "do sleep 0.2; done; sleep 5; "
        f"[ $(readlink {HOME}/current) = $before ] || pkill -KILL -f VLLM::EngineCor[e]; "
        "sleep 5; done"
    )
    script = base64.b64encode(kill.encode()).decode()
    ssh(f"echo {script} | base64 -d >/run/lab-killer; "
        "systemd-run --quiet --collect --unit lab-killer sh /run/lab-killer")  # fmt: skip
    try:
        return _taken_back("dies", arguments={"max_num_seqs": 192})
    finally:
        ssh("systemctl stop lab-killer")


def replicas() -> dict[str, Any]:
    """A release is rolled through two hosts under streaming load; both have the one GPU."""
    fp8 = service("lab-qwen3-8b-fp8-h200", arguments=HALF)
    result: dict[str, Any] = {"one": deploy("replicas-one", {SERVICE: fp8})}
    up(2)
    # The second host starts alone: an engine measures memory, and another one's start spoils that.
    balanced = {"hosts": 2, "address": {"port": BALANCER}}
    result["two"] = deploy("replicas-two", {SERVICE: fp8}, **balanced)
    key = Path(".sparkwright/api_key").read_text().strip()
    changed = {SERVICE: service("lab-qwen3-8b-fp8-h200", arguments={**HALF, "max_num_seqs": 128})}
    with Load(HOST.address, BALANCER, key, workers=16, model="lab-qwen3") as load:
        time.sleep(5)
        result["rollout"] = deploy("replicas-rollout", changed, **balanced)
        time.sleep(5)
    result |= {"served": load.served, "failed": len(load.faults), "longest": load.longest}
    text("replicas-faults.txt", "\n".join(load.faults))
    result["again"] = deploy("replicas-again", changed, **balanced)
    return result
