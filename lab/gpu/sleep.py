"""`python3 -m lab.gpu.sleep FILE`: memory that a sleeping engine frees, and the time to wake up.

The program runs directly on a GPU machine, without a host or Docker, and needs only the archive of
vLLM's wheels. vLLM serves Qwen3-8B's shape in its developer mode, and enters and leaves each level
of sleep twice. A run takes 220 s with the unpacking and the weights.
"""

import datetime as dt
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from lab.gpu.layout import DEPOT_FILES, HOME, MODEL, SITE, VERSION
from lab.gpu.weights import make, plain
from lab.hub import qwen3_fp8
from lab.hub.store import Store

ADDRESS = "http://127.0.0.1:8123"
HELD = "nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader,nounits"
#: Requests that wake up each level: after a deeper sleep, the weights are loaded again.
WAYS = {
    1: (("POST", "/wake_up", None),),
    2: (
        ("POST", "/wake_up?tags=weights", None),
        ("POST", "/collective_rpc", {"method": "reload_weights"}),
        ("POST", "/wake_up?tags=kv_cache", None),
    ),
}


def ask(method: str, path: str, body: Any = None) -> Any:
    """Send a request to the engine; return the answer as JSON, or as text."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(ADDRESS + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read().decode()
    return json.loads(text) if text[:1] in "{[" and text else text


def memory() -> dict[str, int]:
    """MiB of the GPU's used memory, and MiB of the machine's used RAM."""
    held = int(subprocess.check_output(HELD.split(), text=True).split(",")[-1])
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return {"gpu_mib": held, "ram_mib": (total - free) >> 10}


def completion() -> str:
    """The first words of an answer."""
    body = {"model": "m", "prompt": "This", "max_tokens": 8, "temperature": 0}
    return str(ask("POST", "/v1/completions", body)["choices"][0]["text"])


def nap(level: int) -> dict[str, Any]:
    """Sleep once and wake up: seconds and memory."""
    before, started = completion(), time.monotonic()
    ask("POST", f"/sleep?level={level}")
    result: dict[str, Any] = {"level": level, "seconds to sleep": time.monotonic() - started}
    result |= {"asleep": memory(), "is_sleeping": ask("GET", "/is_sleeping")}
    started = time.monotonic()
    for way in WAYS[level]:
        ask(*way)
    answer = completion()
    result |= {"seconds to an answer": time.monotonic() - started, "same answer": answer == before}
    return result | {"awake": memory()}


def model() -> Path:
    """A folder with the model's files, as links into the hub's store."""
    store = Store(DEPOT_FILES / "hub")
    repository = make(store.root, MODEL, qwen3_fp8.tensors(plain), quantization_config={})
    folder = HOME / "model"
    folder.mkdir(exist_ok=True)
    for file in repository.commits[-1].files:
        (folder / file.path).unlink(missing_ok=True)
        (folder / file.path).symlink_to(store.blob(file.sha256))
    return folder


def serve(folder: Path) -> subprocess.Popen[bytes]:
    """Start vLLM, and wait until it answers."""
    command = (
        sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(folder),
        "--served-model-name", "m", "--host", "127.0.0.1", "--port", "8123",
        "--enable-sleep-mode", "--max-model-len", "8192", "--gpu-memory-utilization", "0.85",
    )  # fmt: skip
    variables = {
        **os.environ, "PYTHONPATH": str(SITE), "VLLM_SERVER_DEV_MODE": "1", "HF_HUB_OFFLINE": "1",
        "VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1",
    }  # fmt: skip
    with (HOME / "engine.log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    while process.poll() is None:
        try:
            ask("GET", "/health")
        except OSError:
            time.sleep(0.2)
        else:
            return process
    raise SystemExit((HOME / "engine.log").read_text()[-3000:])


def main(target: Path) -> None:
    """Measure both levels of an engine's sleep on a real GPU, and write the result."""
    asleep = {"none": memory()}
    folder, started = model(), time.monotonic()
    process = serve(folder)
    try:
        ready = time.monotonic() - started
        paths = sorted(ask("GET", "/openapi.json")["paths"])
        gpu, driver, _ = subprocess.check_output(HELD.split(), text=True).split(", ")
        result = {
            "step": "sleep", "command": "python3 -m lab.gpu.sleep FILE",
            "date": dt.datetime.now(dt.UTC).date().isoformat(), "gpu": gpu, "driver": driver,
            "engine": f"vLLM {VERSION}", "seconds to health": ready, **asleep, "awake": memory(),
            "routes": paths,
        }  # fmt: skip
        target.write_text(json.dumps(result, indent=1))
        naps = []
        for level in (1, 1, 2, 2):
            try:
                naps.append(nap(level))
            except OSError as error:
                naps.append({"level": level, "error": f"{error}"})
            target.write_text(json.dumps({**result, "naps": naps}, indent=1))
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
