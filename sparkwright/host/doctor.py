"""Collects what a doctor needs to see of this host; changes nothing. Runs as root.

Request: {"services_root", "models_root", "seconds": between two looks at the metrics, "services":
[{"name", "unit", "address", "port", "home", "secrets"}]}. Answer: see sparkwright/doctor/facts.py.
Every question has a time limit of its own, and all of them together take half a minute at most on
a host that answers. No key leaves the host: secrets are struck out of everything that is told.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkwright.host.lib import reading

#: Lines of a journal and of a container's log, and characters of one of them.
_LINES, _WIDTH = 400, 600
#: How long a service that seems to hang is given to move, seconds: a chunk of a long prompt takes
#: about 16 s on a Spark.
_PATIENCE = 25.0
_LOOK = 2.5
_KERNEL = re.compile(
    r"NVRM|Xid|Out of memory|oom-kill|oom_reaper|thermal|throttl|I/O error|EXT4-fs error|"
    r"nvme.*(timeout|reset|abort)|Under-?voltage",
    re.IGNORECASE,
)
#: MAX_NUM_BATCHED_TOKENS and TQ_KEY_BITS are none.
_SECRET = re.compile(r"(?i)(key|token)$|secret|password")
_BEARER = re.compile(r"(?i)(bearer\s+|--api-key[= ]\s*|api_key['\"]?[:=]\s*['\"]?)([^\s'\",\]]+)")
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}\b")
_HIDDEN = "(hidden)"


def lines(text: str) -> list[str]:
    """The last lines, none of them endless."""
    return [line[:_WIDTH] for line in text.splitlines()[-_LINES:]]


def journal(unit: str, shown: dict[str, str]) -> list[str]:
    """What a unit said: since it started when it never failed, else of the last six hours."""
    since = "-6h"
    started = shown.get("ExecMainStartTimestamp", "")
    if shown.get("ActiveState") == "active" and shown.get("NRestarts") == "0" and started:
        since = started
    words = ["-u", unit, "--since", since, "-n", str(_LINES), "-o", "cat", "--no-pager"]
    return lines(reading.command("journalctl", *words)["out"])


def environment(pairs: list[str]) -> dict[str, str]:
    """A container's variables, without what is secret in them."""
    found = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return {name: _HIDDEN if _SECRET.search(name) else value for name, value in found.items()}


def container(seen: dict[str, Any]) -> dict[str, Any]:
    """What of ``docker inspect`` is told."""
    config, state, host = seen["Config"], seen["State"], seen["HostConfig"]
    return {
        "name": seen["Name"].lstrip("/"),
        "running": state["Running"],
        "started": state["StartedAt"],
        "exit_code": state["ExitCode"],
        "error": state.get("Error") or "",
        "oom_killed": bool(state.get("OOMKilled")),
        "restarts": seen.get("RestartCount", 0),
        "restart_policy": host["RestartPolicy"]["Name"] or "no",
        "image": config["Image"],
        "release": (config.get("Labels") or {}).get("sparkwright.release"),
        "words": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "environment": environment(config.get("Env") or []),
        "gpu": any(
            "gpu" in group
            for one in host.get("DeviceRequests") or []
            for group in one.get("Capabilities") or []
        )
        or host.get("Runtime") == "nvidia",
        "mounts": [
            weights(Path(one["Source"]), one["Destination"])
            for one in seen.get("Mounts") or []
            if one.get("Type") == "bind" and Path(one["Source"]).is_dir()
        ],
    }


def weights(place: Path, target: str) -> dict[str, Any]:
    """What in a mounted directory looks like weights and is none: dead links, LFS pointers."""
    away, pointers = [], []
    for path in sorted(place.glob("*"))[:500]:
        if path.is_symlink():
            real = path.resolve()
            if not real.exists() or place.resolve() not in real.parents:
                away.append(path.name)
        elif path.suffix == ".safetensors" and path.is_file() and path.stat().st_size < 1024:
            head = path.read_bytes()[:64]
            if head.startswith(b"version https://git-lfs"):
                pointers.append(path.name)
    return {"source": str(place), "target": target, "links": away[:20], "pointers": pointers[:20]}


def inspected() -> list[dict[str, Any]]:
    """Every container of the host, running or not."""
    names = reading.command("docker", "ps", "--all", "--quiet", "--no-trunc")["out"].split()
    try:
        seen = json.loads(reading.command("docker", "inspect", *names)["out"]) if names else []
    except ValueError:
        seen = []
    return [container(one) for one in seen]


def service(one: dict[str, Any], containers: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One of our services."""
    shown = reading.unit(one["unit"])
    name = f"sparkwright-{one['name']}"
    own = containers.get(name)
    said = journal(one["unit"], shown)
    inside = None
    if own:
        # What Compose passed on stands in the journal too; what came before it does not.
        told = reading.command("docker", "logs", "--tail", str(_LINES), name)
        known = set(said)
        said += [line for line in lines(told["out"] + told["err"]) if line not in known]
    if own and own["running"]:
        inside = reading.command("docker", "exec", name, "nvidia-smi", "-L")
    status, words = reading.get(one["address"], one["port"], "/health")
    return {
        "unit": shown,
        "log": said,
        "container": own,
        "gpu_inside": inside and {key: inside[key] for key in ("code", "out", "err")},
        "health": {"code": status, "said": words[:200]},
        "metrics": list(looks(one, seconds)),
    }


def looks(one: dict[str, Any], seconds: float) -> Iterator[dict[str, Any]]:
    """The metrics, ``seconds`` apart; again for a while where requests run and nothing moves."""
    first = _metrics(one)
    if first is None:
        return
    yield first
    until = time.monotonic() + seconds + _PATIENCE
    wait = seconds
    while True:
        time.sleep(wait)
        now = _metrics(one)
        if now is None:
            return
        idle = not now["values"].get("vllm:num_requests_running")
        if idle or moved(first["values"], now["values"]) or time.monotonic() > until:
            yield now
            return
        wait = _LOOK


def _metrics(one: dict[str, Any]) -> dict[str, Any] | None:
    found = reading.metrics(one["address"], one["port"])
    return None if found is None else {"at": time.time(), "values": found}


def moved(before: dict[str, float], now: dict[str, float]) -> bool:
    """Whether the engine did anything in between."""
    names = ("generation_tokens_total", "prompt_tokens_total", "iteration_tokens_total_count")
    return any(now.get(f"vllm:{name}", 0) != before.get(f"vllm:{name}", 0) for name in names)


def memory() -> dict[str, int]:
    """/proc/meminfo in bytes."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2:
            found[key] = int(words[0]) * 1024
    return found


def pressure() -> dict[str, dict[str, float]]:
    """``{"memory": {"some": share of the last minute in percent, "full": ...}}``."""
    found: dict[str, dict[str, float]] = {}
    for name in ("cpu", "memory", "io"):
        try:
            text = Path("/proc/pressure", name).read_text()
        except OSError:
            continue
        found[name] = {
            match[1]: float(match[2])
            for match in re.finditer(r"^(some|full) .*avg60=([\d.]+)", text, re.MULTILINE)
        }
    return found


def kernel() -> list[str]:
    """Lines of the kernel of the last day that are about GPU, memory, heat or disks."""
    told = reading.command("journalctl", "-k", "-b", "--since", "-24h", "-o", "cat", "--no-pager")
    text = told["out"]
    if told["code"] != 0 or not text.strip():
        text = reading.command("dmesg")["out"]
    return lines("\n".join(filter(_KERNEL.search, text.splitlines())))


def fetches(models_root: Path) -> list[dict[str, Any]]:
    """Fetches that run, with the age of their last written byte in seconds."""
    shown = reading.command(
        *("systemctl", "list-units", "--plain", "--no-legend", "--state=active"),
        "sparkwright-fetch-*.service",
    )["out"]
    if not shown.strip():
        return []
    times = [
        path.stat().st_mtime
        for stage in models_root.glob("*/.staging-*")
        for path in [stage, *stage.rglob("*")]
        if path.exists()
    ]
    age = time.time() - max(times) if times else 0.0
    return [{"unit": line.split()[0], "idle_seconds": age} for line in shown.splitlines()]


def ports() -> dict[str, int]:
    """Speed of the ConnectX ports that are up, in Mb/s."""
    found = {}
    for place in sorted(Path("/sys/class/net").glob("en[pP]*np*")):
        try:
            if (place / "operstate").read_text().strip() == "up":
                found[place.name] = int((place / "speed").read_text())
        except (OSError, ValueError):
            continue
    return found


def docker() -> dict[str, Any] | None:
    """Docker's own account; None when it does not answer."""
    told = reading.command("docker", "info", "--format", "{{json .}}")
    try:
        info = json.loads(told["out"])
    except ValueError:
        return None
    if not info.get("ServerVersion"):
        return None
    return {
        "version": info["ServerVersion"],
        "root": info["DockerRootDir"],
        "runtimes": sorted(info.get("Runtimes") or {}),
        "warnings": info.get("Warnings") or [],
    }


def document(place: Path) -> Any:
    """A file of JSON; None when it is not there or no JSON."""
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        return None


def keys(request: dict[str, Any]) -> list[str]:
    """Every secret of the services, the longest first."""
    found = set()
    for one in request["services"]:
        try:
            text = Path(one["secrets"]).read_text()
        except OSError:
            continue
        found |= {line.partition("=")[2].strip() for line in text.splitlines() if "=" in line}
    return sorted((key for key in found if len(key) >= 6), key=len, reverse=True)


def struck(told: Any, secrets: list[str]) -> Any:
    """The same without any secret in it."""
    if isinstance(told, dict):
        return {key: struck(value, secrets) for key, value in told.items()}
    if isinstance(told, list):
        return [struck(value, secrets) for value in told]
    if not isinstance(told, str):
        return told
    for secret in secrets:
        told = told.replace(secret, _HIDDEN)
    return _HUB_TOKEN.sub(_HIDDEN, _BEARER.sub(rf"\1{_HIDDEN}", told))


def hidden(words: list[str]) -> list[str]:
    """A command line without the value of ``--api-key``."""
    after = [None, *words]
    return [
        _HIDDEN if before == "--api-key" else word
        for before, word in zip(after, words, strict=False)
    ]


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Collect, and tell it."""
    containers = {one["name"]: one for one in inspected()}
    for one in containers.values():
        one["words"] = hidden(one["words"])
    info = docker()
    roots = [request["models_root"], request["services_root"], "/"]
    ours = {f"sparkwright-{one['name']}" for one in request["services"]}
    with ThreadPoolExecutor(max_workers=8) as pool:
        gpu, dmesg = pool.submit(reading.gpus), pool.submit(kernel)
        services = {
            one["name"]: pool.submit(service, one, containers, float(request["seconds"]))
            for one in request["services"]
        }
        answer = {
            "now": time.time(),
            "services": {name: one.result() for name, one in services.items()},
            "gpu": gpu.result(),
            "kernel": dmesg.result(),
            "others": [one for name, one in containers.items() if name not in ours],
            "disks": reading.disks([*([info["root"]] if info else []), *roots]),
            "memory": memory(),
            "pressure": pressure(),
            "docker": info,
            "fetches": fetches(Path(request["models_root"])),
            "ports": ports(),
            "watch": document(Path(request["services_root"], "state/watch.json")),
        }
    if answer["watch"]:
        answer["watch"].pop("ring", None)
    told: dict[str, Any] = struck(answer, keys(request))
    return told
