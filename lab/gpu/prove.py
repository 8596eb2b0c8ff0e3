"""`python -m lab.gpu.prove STEP...`: tests of the roles on a real GPU, with results as files.

`start.sh run` starts this program. Each step writes `.gpu/results/STEP.json` with the command, day,
GPU, driver and versions, and raw texts beside it. Seconds were measured on one H200, 16 cores:

    deploy      from a bare host to answers, then again            200 s
    proxy       streams at the engine's socket, through HAProxy,
                with TLS                                           600 s *
    container   the container is killed                             60 s *
    replicas    a roll-out over two hosts and GPUs under load      600 s
    ranks       one model over two hosts and GPUs by NCCL; the
                hosts must not serve another model                 500 s
    fp8         the model in blocks of FP8                         170 s
    share       a share that CUDA refuses                          120 s *
    noise       weights of noise                                   130 s *
    dies        a worker that dies after each start                115 s
    devices     the host's device nodes go and come back           160 s
    power       the host's power is cut                             90 s *
    disk        no room for compiled code                          200 s *
    exclusive   two services that take turns                       300 s *
    naps        an idle service sleeps in its process              200 s *
    moe, drafter    other models                                   170 s each
    bench       `vllm bench serve`, and the engine's histograms     90 s *
    captures    nvidia-smi, doctor, top and status, idle and busy  100 s
    boots       restart of the unit, docker restart                180 s
    killed      EngineCore is killed under load                     60 s
    docker, reload                                                  60 s and 10 s
    port        a port that Docker publishes, without HAProxy      300 s *

A `*` marks an estimate for a step that was not completed. The order suits a lease of 25
minutes: without names, all steps run in this order until the time is over. Most steps start from
the base release, which is deployed first if `status` differs (130 s). The steps are here and in
lab/gpu/releases.py, outages.py and models.py.
"""

import datetime as dt
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from lab.gpu import controls, models, outages, releases
from lab.gpu.controls import (
    FIRST,
    HOME,
    INVENTORY,
    PORT,
    RESULTS,
    SERVICE,
    SOCKET,
    UNIT,
    control,
    in_turns,
    journal,
    service,
    ssh,
    streams,
    text,
    timed,
)
from lab.gpu.layout import VERSION

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
#: Streams, rounds, tokens, and the number of alternations between the paths.
LEVELS = ((256, 4, 256, 2), (64, 8, 256, 4), (8, 16, 128, 2), (1, 100, 2, 3))


def deploy() -> dict[str, Any]:
    """Deploy a bare host until it answers, and run a second time."""
    first = controls.deploy("deploy-first")
    journal("first-start.log")
    second = controls.deploy("deploy-second")
    models.keep_memory("first")
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
    """Outputs of nvidia-smi and sparkwright, for an idle host and for a host with 64 streams."""
    idle = _captures("idle")
    load = controls.beside(lambda: streams(SOCKET, 64, 4, 768))
    time.sleep(3)
    busy = _captures("busy")
    text("metrics-busy.txt", ssh(f"curl -s --unix-socket {SOCKET} http://localhost/metrics"))
    load.join()
    code, output, seconds = control("sparkwright", "smoke", INVENTORY, "--json")
    text("smoke.txt", output)
    return {"idle": idle, "busy": busy, "smoke": {"code": code, "seconds": seconds}}


def proxy() -> dict[str, Any]:
    """Streams through HAProxy and at the engine's socket, alternately, requested by the host."""
    plain = {"engine": SOCKET, "proxy": f"127.0.0.1:{PORT}"}
    runs = in_turns(plain, LEVELS)
    text("proxy-runs.json", json.dumps(runs))
    tls = controls.deploy("proxy-tls", tls="own")
    runs += in_turns({"engine": SOCKET, "TLS": f"https://127.0.0.1:{PORT}"}, LEVELS)
    return {"runs": runs, "deploy": tls}


def port() -> dict[str, Any]:
    """Streams without the proxy: at the container's own address, and through Docker's port."""
    silenced = {"open-routes": "a virtual host, to be measured from outside"}
    open_port = service(proxy=False, bind="0.0.0.0", silenced=silenced)
    deployed = controls.deploy("port", {SERVICE: open_port})
    address = ssh(f'docker inspect {UNIT} | grep -oE "[0-9.]{{7,}}" | grep ^172 | tail -n 1')
    text("port.txt", ssh(f"docker inspect {UNIT}; ss -ltn; cat {HOME}/current/compose.yaml"))
    ways = {"container": f"{address.strip()}:{PORT}", "port": f"{controls.HOST.address}:{PORT}"}
    return {
        "runs": in_turns(ways, ((64, 8, 256, 2), (8, 16, 128, 1), (1, 100, 2, 2))),
        "deploy": deployed,
    }


def boots() -> dict[str, Any]:
    """Seconds to /health of a unit's restart and of `docker restart`; logs have the phases."""
    result = {"systemctl restart": [timed(lambda: ssh(f"systemctl restart {UNIT}"))]}
    journal("second-start.log")
    # Under its unit, a restart of the container would end Compose: start the container without
    # the unit.
    ssh(f"systemctl stop {UNIT}")
    compose = f"cd {HOME}/current && docker compose"
    result["by hand"] = [timed(lambda: ssh(f"{compose} up --detach --pull never"))]
    result["docker restart"] = [timed(lambda: ssh(f"docker restart --time 60 {UNIT}"))]
    text("docker-restart.log", ssh(f"docker logs -t --tail 300 {UNIT} 2>&1"))
    ssh(f"{compose} down --volumes; systemctl reset-failed {UNIT}")
    result["systemctl start"] = [timed(lambda: ssh(f"systemctl start {UNIT}"))]
    return {"to_health": {name: seconds[0] for name, seconds in result.items()}}


STEPS: dict[str, Callable[[], Mapping[str, Any]]] = {
    step.__name__: step
    for step in (
        deploy, proxy, outages.container, releases.replicas, releases.ranks, models.fp8,
        releases.share, releases.noise, releases.dies, outages.devices, outages.power, outages.disk,
        models.exclusive, models.naps, models.moe, models.drafter, models.bench, captures, boots,
        outages.killed, outages.docker, outages.reload, port,
    )
}  # fmt: skip

#: These steps deploy their own settings first, without the base release.
_BY_THEMSELVES = {
    "deploy", "replicas", "ranks", "exclusive", "naps", "fp8", "moe", "drafter", "port",
}  # fmt: skip


def main(names: list[str]) -> int:
    """Carry out the steps, in the given order."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    way = "run" if FIRST == 1 else f"lane {FIRST}"
    for name in names or list(STEPS):
        started = time.monotonic()
        try:
            if name not in _BY_THEMSELVES:
                controls.base()
            result = STEPS[name]()
        except (SystemExit, Exception) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        gpu, _, driver, *_ = ssh(SMI["identity"]).strip().split(", ")
        head = {
            "step": name,
            "command": f"lab/gpu/start.sh {way} python -m lab.gpu.prove {name}",
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
