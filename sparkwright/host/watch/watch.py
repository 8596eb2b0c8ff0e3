"""Looks once at this host, adds the sample to the day's, and writes down what is wrong.

Run by ``sparkwright-watch.timer`` every minute, as root. Config: {"services": [{"name", "unit",
"address", "port", "home", "boot_seconds"}], "paths": whose file systems are looked at, "limits",
"heat", "brake": bits of the GPU's event reasons, "state": watch.json, "expected": what the last
deploy left here, "switch": a switch's journal, "metrics": a file for node_exporter}. State:
{"at", "findings": [{"name", "service", "severity", "seen", "since"}], "ring": samples}.
Standard library only; Python 3.10.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from sparkwright.host.lib import reading
from sparkwright.host.watch import evaluation as verdicts

_UNITS = Path("/etc/systemd/system")
_PROGRESS = ("generation_tokens_total", "prompt_tokens_total", "iteration_tokens_total_count")


def document(place: str) -> Any:
    """A file of JSON; empty when it is not there or no JSON."""
    try:
        return json.loads(Path(place).read_text())
    except (OSError, ValueError):
        return {}


def sample(config: dict[str, Any], now: float) -> dict[str, Any]:
    """One look."""
    step = document(config["switch"]).get("step", "ended")
    expected = document(config["expected"]).get("services", {})
    running = containers(config["services"])
    return {
        "at": round(now),
        "switching": step != "ended",
        "gpu": gpu(config),
        "disks": {
            one["path"]: [one["free"], one["total"]] for one in reading.disks(config["paths"])
        },
        "services": {
            one["name"]: {
                **service(one),
                "drift": drift(one, expected.get(one["name"]), running.get(one["name"])),
            }
            for one in config["services"]
        },
    }


def service(one: dict[str, Any]) -> dict[str, Any]:
    """A service's unit, health and counters."""
    shown = reading.unit(one["unit"])
    found: dict[str, Any] = {
        "active": shown.get("ActiveState"),
        "restarts": int(shown.get("NRestarts") or 0),
        "health": reading.get(one["address"], one["port"], "/health")[0],
    }
    told = reading.metrics(one["address"], one["port"]) if found["health"] == 200 else None
    if told is None:
        return found
    found["running"] = told.get("vllm:num_requests_running", 0.0)
    found["waiting"] = told.get("vllm:num_requests_waiting", 0.0)
    found["cache"] = round(told.get("vllm:kv_cache_usage_perc", 0.0), 3)
    found["progress"] = sum(told.get(f"vllm:{name}", 0.0) for name in _PROGRESS)
    drafted = told.get("vllm:spec_decode_num_draft_tokens_total")
    if drafted is not None:
        found["drafted"] = drafted
        found["accepted"] = told.get("vllm:spec_decode_num_accepted_tokens_total", 0.0)
    return found


def containers(services: list[dict[str, Any]]) -> dict[str, str]:
    """Service -> the release whose container runs."""
    form = '{{.Name}} {{.State.Running}} {{index .Config.Labels "sparkwright.release"}}'
    names = [f"sparkwright-{one['name']}" for one in services]
    told = reading.command("docker", "inspect", "--format", form, *names)["out"]
    rows = [line.split() for line in told.splitlines()]
    return {
        row[0].lstrip("/").removeprefix("sparkwright-"): row[2]
        for row in rows
        if len(row) == 3 and row[1] == "true"
    }


def drift(one: dict[str, Any], wanted: dict[str, str] | None, runs: str | None) -> list[str]:
    """What of a service is not as the last deploy left it."""
    if wanted is None:
        return []
    current = Path(one["home"], "current")
    found = []
    link = current.readlink().name if current.is_symlink() else "nothing"
    if link != wanted["release"]:
        found.append(f"release {link} instead of {wanted['release']}")
    elif reading.digest(current / "compose.yaml") != wanted["compose"]:
        found.append("compose.yaml was changed by hand")
    if reading.digest(_UNITS / one["unit"]) != wanted["unit"] and link == wanted["release"]:
        found.append(f"{one['unit']} was changed by hand")
    if runs is not None and runs != link:
        found.append(f"the container is of release {runs}")
    return found


def gpu(config: dict[str, Any]) -> dict[str, str]:
    """What is wrong with the GPU, in words."""
    return verdicts.gpu_state(reading.gpus(), config["limits"], config["heat"], config["brake"])


def look(config: dict[str, Any], now: float) -> list[str]:
    """Look, judge and write it down. Returns what began and what is over, as lines."""
    before = document(config["state"])
    known = before.get("findings", [])
    ring = verdicts.kept([*before.get("ring", []), sample(config, now)])
    found = verdicts.judge(ring, config["services"], config["limits"])
    found = verdicts.carried(found, known, round(now))
    state = {"at": round(now), "findings": found, "ring": ring}
    write(Path(config["state"]), json.dumps(state, separators=(",", ":")), 0o600)
    write(Path(config["metrics"]), exported(found, round(now)), 0o644)
    return [
        *(_line(one) for one in found if _key(one) not in map(_key, known)),
        *(f"over: {_line(one)}" for one in known if _key(one) not in map(_key, found)),
    ]


def write(place: Path, text: str, mode: int) -> None:
    """Write a file in one step: a power cut leaves the one before."""
    temporary = place.with_name(f".{place.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(temporary, flags, mode), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    temporary.replace(place)


def exported(found: list[dict[str, Any]], now: int) -> str:
    """The verdicts as node_exporter's textfile collector reads them."""
    lines = [
        "# HELP sparkwright_watch_seconds When the watch looked last, since the epoch.",
        "# TYPE sparkwright_watch_seconds gauge",
        f"sparkwright_watch_seconds {now}",
        "# HELP sparkwright_finding What the watch holds to be wrong.",
        "# TYPE sparkwright_finding gauge",
    ]
    for one in found:
        labels = {"diagnosis": one["name"], "service": one["service"] or ""}
        labels["severity"] = one["severity"]
        inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
        lines.append(f"sparkwright_finding{{{inner}}} 1")
    return "\n".join([*lines, ""])


def _key(one: dict[str, Any]) -> tuple[str, str | None]:
    return one["name"], one["service"]


def _line(one: dict[str, Any]) -> str:
    where = f"{one['service']}: " if one["service"] else ""
    return f"{where}{one['severity']}: {one['name']}: {one['seen']}"


def run(path: str) -> int:
    """One look by the clock; what changed goes to the journal."""
    for line in look(document(path), time.time()):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
