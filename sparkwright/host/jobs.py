"""Starts and watches jobs: transient systemd services that outlive connection and controller.

Runs on the host as root (see roles/remote.py).
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from sparkwright.host.lib import files

MODEST = ("Nice=10", "IOSchedulingClass=idle", "OOMScoreAdjust=500")
PROPERTIES = "LoadState,ActiveState,Result,ExecMainStatus,ExecMainStartTimestampMonotonic"


def show(unit: str) -> dict[str, str]:
    """systemd's view of a unit."""
    out = subprocess.run(
        ["systemctl", "show", "-p", PROPERTIES, f"{unit}.service"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)


def start(job: dict[str, Any]) -> None:
    """Start a job, unless it is running already: then it is followed."""
    if show(job["unit"]).get("ActiveState") in ("active", "activating"):
        return
    if job.get("instead_of"):
        subprocess.run(["systemctl", "stop", job["instead_of"]], capture_output=True, check=False)
    subprocess.run(
        ["systemctl", "reset-failed", f"{job['unit']}.service"], capture_output=True, check=False
    )
    for path, content in job["files"].items():
        text = content if isinstance(content, str) else json.dumps(content)
        files.write(Path(path), text, 0o600)
        Path(path).with_name("progress.json").unlink(missing_ok=True)
    command = [
        "systemd-run",
        "--quiet",
        "--service-type=exec",
        f"--unit={job['unit']}",
        f"--description={job['description']}",
    ]
    # A box that is already serving must not suffer from what is fetched for later.
    properties = [*job.get("properties", ()), *(() if job.get("urgent") else MODEST)]
    command += [f"--property={one}" for one in properties]
    done = subprocess.run(
        [*command, "--", *job["argv"]], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and "already" not in done.stderr:
        raise SystemExit(f"{job['description']}: {done.stderr.strip()}")


def watch(job: dict[str, str]) -> dict[str, Any]:
    """Whether a job still runs, how far it is, and its last words when it failed."""
    seen = show(job["unit"])
    running = seen.get("ActiveState") in ("active", "activating", "deactivating")
    failed = seen.get("ActiveState") == "failed"
    progress = None
    if job.get("state"):
        try:
            progress = json.loads(Path(job["state"], "progress.json").read_text())
        except (OSError, ValueError):
            progress = None
    words: list[str] = []
    if failed:
        journal = subprocess.run(
            ["journalctl", "-u", f"{job['unit']}.service", "-n", "8", "-o", "cat", "--no-pager"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        words = journal.stdout.strip().splitlines()
    return {"running": running, "failed": failed, "progress": progress, "words": words}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Start what is to start; then wait, at most ``wait`` seconds, for the watched jobs to end."""
    for path, content in request.get("secrets", {}).items():
        files.write(Path(path), content, 0o600)
    for job in request.get("start", []):
        start(job)
    deadline = time.monotonic() + float(request.get("wait", 0))
    while True:
        watched = {job["unit"]: watch(job) for job in request.get("watch", [])}
        if time.monotonic() >= deadline or not any(job["running"] for job in watched.values()):
            return watched
        time.sleep(0.2)
