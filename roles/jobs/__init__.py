"""Jobs: waits for what ``weights`` and ``image`` started, and proves it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from roles import image as images
from roles import remote, site, steps, weights
from roles.contents import missing_images, missing_models
from roles.jobs.live import Live
from sparkwright.catalog.gpu import parse_query
from sparkwright.host import jobs as jobs_program
from sparkwright.host import proof as proof_program
from sparkwright.report.progress import Job, line

#: Seconds between two lines of progress.
_LINE_EVERY = 5
_LIVE = Live()
#: A fetch or pull that says nothing new for so long is given up on; the job itself goes on.
_PATIENCE = 6 * 3600


def fetched() -> None:
    """Wait for image and weights, then prove both and the GPU inside a container."""
    steps.step("Image and weights: on the disk and verified", _pending, _wait)
    steps.step("GPU: seen from inside the image", _unproved, _prove)


def _pending(run: site.HostRun) -> Sequence[str]:
    return [
        *(f"wait for {model.repository}" for model in missing_models(run).values()),
        *(f"wait for {image}" for image in missing_images(run)),
    ]


def _wait(host: Host, run: site.HostRun) -> Sequence[str]:
    names: dict[str, str] = {}
    watch: list[dict[str, str]] = []
    for model in missing_models(run).values():
        names[weights.job_name(model)] = model.repository.rpartition("/")[2]
        watch.append(
            {"unit": weights.job_name(model), "state": weights.state_directory(run, model)}
        )
    for image, pull in missing_images(run).items():
        names[images.job_name(image)] = f"image {pull.release.service.image.tag}"
        watch.append({"unit": images.job_name(image), "state": images.state_directory(run, image)})
    every = 1 if _LIVE.on else _LINE_EVERY
    until = time.monotonic() + _PATIENCE
    try:
        while time.monotonic() < until:
            answer = remote.ask(
                host, "sparkwright-jobs", jobs_program, {"watch": watch, "wait": every}
            )
            failed = {unit: job for unit, job in answer.items() if job["failed"]}
            if failed:
                raise remote.HostError(
                    "; ".join(_failure(names[unit], job) for unit, job in failed.items())
                )
            if not any(job["running"] for job in answer.values()):
                break
            text = line([Job.of(names[unit], job) for unit, job in answer.items()])
            if _LIVE.on:
                _LIVE.show(host.name, text)
            else:
                host.log(text)
    finally:
        if _LIVE.on:
            _LIVE.remove(host.name)
    request = {
        "models": [[directory, model.commit] for directory, model in run.wanted.models().items()],
        "images": [release.image for release in run.wanted.releases],
    }
    wrong = remote.ask(host, "sparkwright-proof", proof_program, request)
    if wrong:
        raise remote.HostError("; ".join(wrong))
    return [f"{name} is on the disk and verified" for name in names.values()]


def _failure(name: str, job: dict[str, Any]) -> str:
    progress = job["progress"] or {}
    words = [
        line
        for line in job["words"]
        if not line.startswith(("Started", "Starting", "Stopped", "Main process"))
    ]
    said = progress.get("message") if progress.get("state") == "failed" else None
    return f"{name}: {said or (words[-1] if words else 'failed without a word')}"


def _versions(run: site.HostRun) -> dict[str, str]:
    """What the proof depends on: another driver, Docker or toolkit asks for a new one."""
    gpus = parse_query(run.seen.gpu.out)
    docker = run.seen.docker
    return {
        "driver": gpus[0].driver or "" if gpus else "",
        "docker": (docker.version or "") if docker else "",
        "toolkit": run.seen.toolkit.out.strip().splitlines()[0]
        if run.seen.toolkit.out.strip()
        else "",
    }


def _unproved_images(run: site.HostRun) -> list[str]:
    try:
        known = json.loads(run.seen.gpu_check or "{}")
    except ValueError:
        known = {}
    images = sorted({release.image for release in run.wanted.releases})
    return [image for image in images if known.get(image) != _versions(run)]


def _unproved(run: site.HostRun) -> Sequence[str]:
    return ["run nvidia-smi inside the image"] if _unproved_images(run) else []


def _prove(host: Host, run: site.HostRun) -> Sequence[str]:
    request = {
        "gpu_images": _unproved_images(run),
        "record": f"{run.plan.settings.services_root}/state/gpu-check.json",
        "versions": _versions(run),
    }
    wrong = remote.ask(host, "sparkwright-gpu", proof_program, request, timeout=180)
    if wrong:
        raise remote.HostError("; ".join(wrong))
    return ["a container sees the GPU"]
