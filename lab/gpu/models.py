"""Other models on a real GPU, their memory, and figures. See `lab.gpu.prove`."""

import json
import re
import time
from pathlib import Path
from typing import Any

from lab.gpu import logs
from lab.gpu.controls import (
    HELD,
    HOME,
    INVENTORY,
    PORT,
    SERVICE,
    SOCKET,
    UNIT,
    control,
    deploy,
    journal,
    service,
    ssh,
    streams,
    text,
)

#: Figures of `vllm bench serve`, each with the engine's histogram.
_HISTOGRAMS = {
    "TTFT": "time_to_first_token",
    "TPOT": "request_time_per_output_token",
    "E2EL": "e2e_request_latency",
}


def keep_memory(name: str) -> dict[str, Any]:
    """Compare the plan's memory with the engine's memory: the plan's exit code, used MiB,
    phases.
    """
    lines = [line for line in journal(f"{name}.log").splitlines() if line[:1].isdigit()]
    code, output, _ = control("sparkwright", "plan", INVENTORY, "--json")
    text(f"plan-{name}.txt", output)
    begun = max((n for n, line in enumerate(lines) if "Attaching to" in line), default=0)
    result: dict[str, Any] = {"plan": code, "held_mib": int(ssh(HELD).split()[0])}
    result |= {"memory": logs.memory(lines[begun:]), "phases": logs.phases(lines[begun:])}
    text(f"memory-{name}.json", json.dumps(result, indent=1))
    return result


def _model(name: str, recipe: str, **changed: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"deploy": deploy(name, {SERVICE: service(recipe, **changed)})}
    result |= keep_memory(name)
    result["streams"] = [streams(SOCKET, count, 3, 128) for count in (1, 8, 64)]
    return result


def fp8() -> dict[str, Any]:
    """Qwen3-8B's shape in blocks of FP8, at half of the memory."""
    return _model("fp8", "lab-qwen3-8b-fp8-h200", arguments={"gpu_memory_utilization": 0.5})


def moe() -> dict[str, Any]:
    """Six layers of Qwen3-30B-A3B's shape: 128 experts."""
    return _model("moe", "lab-qwen3-moe-h200")


def drafter() -> dict[str, Any]:
    """The tiny pair with DFlash."""
    return _model("drafter", "lab-tiny-dflash-h200")


def _metrics(name: str) -> str:
    return text(
        f"metrics-{name}.txt", ssh(f"curl -s --unix-socket {SOCKET} http://localhost/metrics")
    )


def mounted(compose: str) -> str:
    """The mount of the model's files in a compose file, in the form of `docker run -v`."""
    match = re.search(r'source: "(/opt/models/[^"]+)", target: "(/models/[^"]+)"', compose)
    if not match:
        raise SystemExit("the compose file mounts no model")
    return f"{match[1]}:{match[2]}:ro"


def histograms(before: str, after: str) -> dict[str, float]:
    """Means of the engine's histograms between two readings of its metrics, in milliseconds."""

    def rise(name: str) -> float:
        pattern = re.compile(rf"^vllm:{name}{{.*}} (\S+)$", re.M)
        return sum(map(float, pattern.findall(after))) - sum(map(float, pattern.findall(before)))

    return {
        name: round(rise(f"{histogram}_seconds_sum") / rise(f"{histogram}_seconds_count") * 1000, 2)
        for name, histogram in _HISTOGRAMS.items()
    }


def client(output: str) -> dict[str, float]:
    """Means that `vllm bench serve` printed, in milliseconds."""
    return {name: float(re.findall(rf"^Mean {name} \(ms\): +(\S+)", output, re.M)[0])
            for name in _HISTOGRAMS}  # fmt: skip


def bench() -> dict[str, Any]:
    """Run `vllm bench serve` and sparkwright's streams between readings of vLLM's histograms."""
    compose = text("compose.yaml", ssh(f"cat {HOME}/current/compose.yaml"))
    before = _metrics("bench-before")
    key = Path(".sparkwright/api_key").read_text().strip()
    image = ssh(f"docker inspect -f {{{{.Image}}}} {UNIT}").strip()
    command = (
        f"docker run --rm --network host -e OPENAI_API_KEY={key} -v {mounted(compose)} "
        f"--entrypoint vllm {image} bench serve "
        f"--base-url http://127.0.0.1:{PORT} --backend openai "
        "--endpoint /v1/completions --model lab-qwen3 --tokenizer /models/qwen3 "
        "--dataset-name random --random-input-len 256 --random-output-len 128 --ignore-eos "
        "--num-prompts 96 --max-concurrency 8 --percentile-metrics ttft,tpot,itl,e2el"
    )
    output = text("vllm-bench.txt", ssh(command))
    after = _metrics("bench-after")
    own = streams(f"127.0.0.1:{PORT}", 8, 12, 128)
    _metrics("streams-after")
    return {"client": client(output), "histograms": histograms(before, after), "streams": own}


def exclusive() -> dict[str, Any]:
    """Two services of one group: seconds to switch there and back, and free memory in between."""
    pair = {
        SERVICE: service(exclusive="day"),
        "coder": service("lab-qwen3-8b-fp8-h200", port=8001, exclusive="day",
                         served_names=["lab-coder"]),
    }  # fmt: skip
    result: dict[str, Any] = {"deploy": deploy("exclusive", pair)}
    for turn, name in enumerate(("coder", SERVICE, "coder", SERVICE)):
        code, output, seconds = control("sparkwright", "activate", INVENTORY, name, "--yes")
        text(f"activate-{turn}.txt", output)
        result[f"{turn} {name}"] = {"code": code, "seconds": seconds, "held_mib": ssh(HELD).strip()}
    return result


def _until_slept() -> float:
    """Seconds until the GPU has only a sleeping engine's memory: below 10,000 MiB."""
    started = time.monotonic()
    while int(ssh(HELD).split()[0]) > 10_000 and time.monotonic() - started < 120:
        time.sleep(0.5)
    return round(time.monotonic() - started, 1)


def naps() -> dict[str, Any]:
    """An idle service sleeps in its process: MiB in use, seconds to wake up, and the next
    answer.
    """
    idle = {SERVICE: service(idle={"after": "20s", "do": "sleep"})}
    result: dict[str, Any] = {"deploy": deploy("naps", idle), "awake_mib": ssh(HELD).strip()}
    for turn in range(3):
        result[f"nap {turn}"] = {
            "seconds": _until_slept(),
            "held_mib": ssh(HELD).strip(),
            "answer": streams(f"127.0.0.1:{PORT}", 1, 2, 32),
            "again": streams(f"127.0.0.1:{PORT}", 1, 2, 32),
        }
    _until_slept()
    for name in ("status", "doctor"):
        code, output, seconds = control("sparkwright", name, INVENTORY)
        text(f"naps-{name}.txt", output)
        result[name] = {"code": code, "seconds": seconds}
    result["second"] = deploy("naps-second", idle)
    result["slept_mib"] = ssh(HELD).strip()
    journal("naps.log")
    return result
