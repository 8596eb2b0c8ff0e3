"""Starts and watches jobs: transient systemd services that outlive connection and controller.

Runs on the host as root.
"""

from __future__ import annotations

import time
from pathlib import Path

from sparkwright.host.contracts.jobs import Job, JobsRequest, JobStatus, WatchedJob
from sparkwright.host.lib import (
    credentials,
    documents,
    files,
    journal,
    sandbox,
    systemd,
    trusted,
)
from sparkwright.host.lib.processes import run

#: Seconds that a run's secrets in /run are kept.
_LIFE = 2 * 86400
MODEST = ("Nice=10", "IOSchedulingClass=idle", "OOMScoreAdjust=500")


def start(job: Job) -> None:
    """Start a job, unless it is running already: then it is followed."""
    unit = f"{job.unit}.service"
    if systemd.unit(unit).get("ActiveState") in ("active", "activating"):
        command = systemd.showing(unit, fields="ExecStart").outcome().out
        if not job.program or not command or f"{job.program}/" in command:
            return
        systemd.systemctl("stop", unit)
    if job.instead_of:
        systemd.systemctl("stop", job.instead_of)
        for old in systemd.TRANSIENT.glob(job.instead_of):
            old.unlink()
    systemd.systemctl("reset-failed", unit)
    for path, text in job.files.items():
        files.write(Path(path), text, 0o600)
        Path(path).with_name("progress.json").unlink(missing_ok=True)
    for path in (*job.writable, *job.directories):
        try:
            with trusted.directory(path, make=0o755):
                pass
        except trusted.Exposed as error:
            raise SystemExit(f"{job.description}: {error.filename} {error.strerror}") from None
    if job.units:
        _start_own(job)
        return
    words = ["--quiet", "--service-type=exec", f"--unit={job.unit}"]
    words.append(f"--description={job.description}")
    writable = (f"ReadWritePaths={' '.join(job.writable)}",) if job.writable else ()
    # A box that is already serving must not suffer from what is fetched for later.
    modest = () if job.urgent else MODEST
    # With this type it returns when the program runs, and so has its credentials.
    with credentials.handed(job.credentials) as loaded:
        words += sandbox.arguments((*job.properties, *writable, *modest, *loaded))
        done = run("systemd-run", *words, "--", *job.argv)
    if not done.ok and "already" not in done.err:
        raise SystemExit(f"{job.description}: {done.err.strip()}")


def _start_own(job: Job) -> None:
    """Start a job that has unit files. They are new to systemd, so that it needs no reload."""
    for name, text in job.units.items():
        files.write(systemd.TRANSIENT / name, text, 0o644, durable=False)
    done = run("systemctl", "start", f"{job.unit}.service")
    if not done.ok:
        said = [line for name in job.units for line in journal.last(name, 2)]
        raise SystemExit(f"{job.description}: {'; '.join(said) or done.err.strip()}")


def _forget(path: Path) -> None:
    """Remove what lies beside a secret of a run for longer than any job of a run takes."""
    for old in path.parent.iterdir():
        if time.time() - old.stat().st_mtime > _LIFE:
            old.unlink()


def watch(job: WatchedJob) -> JobStatus:
    """Whether a job still runs, how far it is, and its last words when it failed."""
    unit = f"{job.unit}.service"
    state = systemd.unit(unit).get("ActiveState")
    return JobStatus(
        running=state in systemd.RUNNING,
        failed=state == "failed",
        progress=documents.read(Path(job.state, "progress.json")) if job.state else None,
        journal=tuple(journal.last(unit, 8)) if state == "failed" else (),
    )


def main(request: JobsRequest) -> dict[str, JobStatus]:
    """Start what is to start; then wait for the watched jobs to end. Answers by unit."""
    for path, text in request.secrets.items():
        files.write(Path(path), text, 0o600)
        if path.startswith("/run/"):
            _forget(Path(path))
    for job in request.start:
        start(job)
    deadline = time.monotonic() + request.wait
    while True:
        watched = {job.unit: watch(job) for job in request.watch}
        if time.monotonic() >= deadline or not any(job.running for job in watched.values()):
            return watched
        time.sleep(0.2)
