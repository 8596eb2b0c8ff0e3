"""Proves what a service needs before it is touched. Runs on the host as root (roles/remote.py)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sparkwright.host.lib import receipt

REMEDY = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


def main(request: dict[str, Any]) -> list[str]:
    """What is wrong, as lines: receipts of ``models``, ``images``, the GPU in ``gpu_images``.

    When the GPU is seen, ``versions`` are written to ``record`` for these images.
    """
    wrong = []
    for directory, commit in request.get("models", []):
        fault = receipt.check(directory, commit)
        if fault:
            wrong.append(f"{directory} {fault}")
    for image in request.get("images", []):
        done = subprocess.run(
            ["docker", "image", "inspect", image], capture_output=True, check=False
        )
        if done.returncode != 0:
            wrong.append(f"{image} is not there after the pull")
    for image in request.get("gpu_images", []):
        command = [
            "docker",
            "run",
            "--rm",
            "--gpus",
            "all",
            "--network",
            "none",
            "--entrypoint",
            "nvidia-smi",
            image,
            "-L",
        ]
        try:
            done_text = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=120
            )
        except subprocess.TimeoutExpired:
            wrong.append("a container that asks for the GPU hangs: reboot the host")
            continue
        if done_text.returncode != 0 or "GPU 0" not in done_text.stdout:
            said = (done_text.stderr or done_text.stdout).strip().splitlines()
            wrong.append(
                f"no GPU inside a container: {said[-1] if said else 'no word'} (remedy: {REMEDY})"
            )
    if request.get("gpu_images") and not wrong:
        record(Path(request["record"]), request["gpu_images"], request["versions"])
    return wrong


def record(place: Path, images: list[str], versions: dict[str, str]) -> None:
    """Write down what was proved, beside what was before: going back needs no new proof."""
    try:
        known = json.loads(place.read_text())
    except (OSError, ValueError):
        known = {}
    there = {image: one for image, one in known.items() if one == versions}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({**there, **dict.fromkeys(images, versions)}))
