"""Tells what a benchmark ran on: GPU and its state, versions, and the bytes that serve.

Runs on the host as root (roles/remote.py): the containers are Docker's to tell. Changes nothing.
What can't be told is None.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from sparkwright.host.observe import docker

#: In the order of the answer's keys; MHz, degrees Celsius and W.
GPU_FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "sm_clock_mhz": "clocks.sm",
    "sm_clock_max_mhz": "clocks.max.sm",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
}
#: For a driver that does not know one of the others: it then answers none of them.
LEAST_FIELDS = {"name": "name", "driver": "driver_version"}
#: First line of a release's compose file (templates/serving/compose.yaml.j2).
_WRITTEN = re.compile(r"# Written by sparkwright: service \S+, recipe (\S+), tag (\S+)\.$")
_DIGEST = re.compile(r":sha256-([0-9a-f]{64})$")
_COMMIT = re.compile(r"/(?P<org>[^/]+?)--(?P<name>[^/]+)/(?P<commit>[0-9a-f]{40})$")


def gpu() -> dict[str, str | None]:
    """The first GPU, in nvidia-smi's own words; empty where there is none."""
    for fields in (GPU_FIELDS, LEAST_FIELDS):
        query = f"--query-gpu={','.join(fields.values())}"
        try:
            done = subprocess.run(
                ["nvidia-smi", query, "--format=csv,noheader,nounits"],
                capture_output=True, text=True, check=False, timeout=10,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return {}
        values = [value.strip() for value in (done.stdout.splitlines() or [""])[0].split(",")]
        if done.returncode == 0 and len(values) == len(fields):
            return dict(zip(fields, values, strict=True))
    return {}


def ask(service: dict[str, Any], path: str) -> str | None:
    """The text of one of vLLM's routes that need no key."""
    connection = http.client.HTTPConnection(service["address"], service["port"], timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read().decode(errors="replace") if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def version(service: dict[str, Any]) -> str | None:
    """vLLM's version as it tells it."""
    try:
        return str(json.loads(ask(service, "/version") or "")["version"])
    except (ValueError, KeyError, TypeError):
        return None


def busy(service: dict[str, Any]) -> bool:
    """Whether the service works on any request."""
    running = re.findall(
        r"^vllm:num_requests_running(?:\{.*\})? (\S+)$",
        ask(service, "/metrics") or "",
        re.MULTILINE,
    )
    return any(float(value) > 0 for value in running)


def running(service: dict[str, Any]) -> dict[str, Any]:
    """What serves: release, recipe and tag, image and digest, models and their commits."""
    found: dict[str, Any] = {"vllm": version(service), "models": {}}
    container = docker(f"/containers/sparkwright-{service['name']}/json")
    if container is None or not container["State"]["Running"]:
        return found
    release = container["Config"]["Labels"].get("sparkwright.release")
    image = str(container["Config"]["Image"])
    digest = _DIGEST.search(image)
    found |= {"release": release, "image": image, "digest": digest and f"sha256:{digest[1]}"}
    for mount in container.get("Mounts") or []:
        model = _COMMIT.search(str(mount.get("Source")))
        if model:
            found["models"][f"{model['org']}/{model['name']}"] = model["commit"]
    try:
        compose = Path(service["home"], "releases", str(release), "compose.yaml")
        written = _WRITTEN.match(compose.read_text(encoding="utf-8").splitlines()[0])
    except (OSError, IndexError):
        written = None
    if written:
        found |= {"recipe": written[1], "tag": written[2]}
    return found


def under_load(request: dict[str, Any]) -> list[dict[str, str | None]]:
    """The GPU once a second while any service is busy; as long as the request says at most."""
    end = time.monotonic() + request["seconds"]
    samples: list[dict[str, str | None]] = []
    while time.monotonic() < end and len(samples) < request["samples"]:
        if any(busy(service) for service in request["services"]):
            samples.append(gpu())
        elif samples:
            break
        time.sleep(1)
    return samples


def main(request: dict[str, Any]) -> dict[str, Any]:
    """``{"services": [{name, home, address, port}], "samples", "seconds"}``; see bench/host.py."""
    if request["samples"]:
        return {"samples": under_load(request)}
    return {
        "gpu": gpu(),
        "services": {service["name"]: running(service) for service in request["services"]},
    }
