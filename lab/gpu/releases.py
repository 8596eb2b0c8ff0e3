"""Roll-outs on a real GPU: failing releases, and a release whose failure stays unnoticed. See
`lab.gpu.prove`.
"""

import base64
import time
from pathlib import Path
from typing import Any

from lab.gpu.controls import (
    HELD,
    HOME,
    HOST,
    INVENTORY,
    MODEL,
    PORT,
    RECIPE,
    SECOND,
    SERVICE,
    SOCKET,
    UNIT,
    control,
    deploy,
    doctor,
    in_turns,
    journal,
    service,
    ssh,
    text,
    until_well,
)
from lab.layout import Machine
from tests.fleet.traffic import Load

BALANCER = 8080
AT_THE_ADDRESS = ((1, 40, 2, 3), (8, 4, 128, 2), (64, 3, 128, 3))


def _taken_back(name: str, recipe: str = RECIPE, **changed: Any) -> dict[str, Any]:
    before = ssh(f"readlink {HOME}/current").strip()
    run = deploy(name, {SERVICE: service(recipe, **changed)})
    journal(f"{name}.log")
    after = ssh(f"readlink {HOME}/current").strip()
    code, output, _ = control("sparkwright", "status", INVENTORY)
    text(f"{name}-status.txt", output)
    return {"run": run, "before": before, "after": after, "status": code}


def share() -> dict[str, Any]:
    """A release that requests 0.995 of the GPU, which CUDA refuses: the host rolls back and reports
    the reason.
    """
    return _taken_back("share", arguments={"gpu_memory_utilization": 0.995})


def noise() -> dict[str, Any]:
    """A release with random weights, which starts and answers nonsense."""
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
    """A release is rolled through two hosts under streaming load, behind one address."""
    balanced: dict[str, Any] = {"hosts": 2, "address": {"port": BALANCER}}
    result: dict[str, Any] = {"first": deploy("replicas-first", **balanced)}
    # Both paths lead to both engines, which share the time of one GPU.
    proxies = f"127.0.0.1:{PORT},{SECOND.address}:{PORT}"
    ways = {"proxies": proxies, "address": f"127.0.0.1:{BALANCER}"}
    result["streams"] = in_turns(ways, AT_THE_ADDRESS)
    key = Path(".sparkwright/api_key").read_text().strip()
    changed = {SERVICE: service(arguments={"max_num_seqs": 128})}
    with Load(HOST.address, BALANCER, key, workers=16, model=MODEL) as load:
        time.sleep(5)
        result["rollout"] = deploy("replicas-rollout", changed, **balanced)
        time.sleep(5)
    result |= {"served": load.served, "failed": len(load.faults), "longest": load.longest}
    text("replicas-faults.txt", "\n".join(load.faults))
    result["again"] = deploy("replicas-again", changed, **balanced)
    return result


def _ends_and_returns(name: str, host: Machine) -> dict[str, Any]:
    """A rank's container is killed: seconds until requests fail, and until requests succeed."""
    started = time.monotonic()
    ssh(f"docker kill {UNIT}", host=host)
    ssh(f"timeout 60 sh -c \"while curl -fs -m 2 -o /dev/null --unix-socket {SOCKET} "
        "http://localhost/health; do sleep 0.1; done\"")  # fmt: skip
    ended = round(time.monotonic() - started, 2)
    until_well()
    text(f"ranks-{name}.log", ssh(f"journalctl -u {UNIT} --no-pager | tail -n 400", host=host))
    return {"seconds to the end": ended, "seconds to health": round(time.monotonic() - started, 2)}


def ranks() -> dict[str, Any]:
    """One model over two hosts with a GPU each, by NCCL over their network; each rank dies once."""
    hosts = {host.name: host.address for host in (HOST, SECOND)}
    pair = {"hosts": list(hosts), "fabric": "network", "interface": "host0", "addresses": hosts}
    spread = {SERVICE: service("lab-qwen3-8b-2-ranks-h200", cluster="pair")}
    result: dict[str, Any] = {"deploy": deploy("ranks", spread, hosts=2, clusters={"pair": pair})}
    journal("ranks.log")
    result["streams"] = in_turns({"ranks": f"127.0.0.1:{PORT}"}, AT_THE_ADDRESS)
    result["held_mib"] = [int(ssh(HELD, host=host).split()[0]) for host in (HOST, SECOND)]
    result["follower"] = _ends_and_returns("follower", SECOND)
    result["head"] = _ends_and_returns("head", HOST)
    result["doctor"] = doctor("ranks")
    result["second"] = deploy("ranks-second", spread, hosts=2, clusters={"pair": pair})
    return result
