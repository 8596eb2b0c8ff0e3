"""Starts and watches jobs: transient systemd services that outlive connection and controller.

Runs on the host as root.
"""

from __future__ import annotations

import time
from pathlib import Path

from sparkwright.host.lib import credentials, documents, files, journal, sandbox, systemd, trusted
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class Job:
    """A job to start.

    Attributes:
        unit: name without ``.service``; a job of this name that runs already is followed.
        argv: its command.
        files: path -> text, written before it starts, for root alone.
        credentials: name -> secret. The job finds each at ``credential(unit, name)``; it is in
            memory only, and gone when the job ends, however it ends.
        writable: directories that it writes to, made where they are not there; nothing else is.
        properties: of its unit, as ``Name=value``: in place of the sandbox's, or beyond them.
        urgent: whether it may slow down what the host serves.
        instead_of: pattern of units that make room for it.
        units: unit files of its own, by name, in place of a command: ``unit`` is a service of them.
            Their names must change with their text, since nothing makes systemd read them again.
        directories: made before it starts, for all to read.
        program: directory of its program: a running job with another one is stopped, and resumes
            with this one. None follows it.
    """

    unit: str
    description: str
    argv: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    credentials: dict[str, str] = field(default_factory=dict)
    writable: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    urgent: bool = False
    instead_of: str | None = None
    units: dict[str, str] = field(default_factory=dict)
    directories: tuple[str, ...] = ()
    program: str | None = None


def credential(unit: str, name: str) -> str:
    """Where a job finds one of its credentials (systemd.exec(5), LoadCredential=)."""
    return f"/run/credentials/{unit}.service/{name}"


@dataclass(frozen=True)
class WatchedJob:
    """A job to look at; ``state`` is the directory of its progress.json."""

    unit: str
    state: str | None = None


@dataclass(frozen=True)
class JobsRequest:
    """Jobs to start and to wait for.

    Attributes:
        secrets: path -> text, written for root alone before any job starts.
        wait: seconds to wait at most until no watched job runs.
    """

    start: tuple[Job, ...] = ()
    watch: tuple[WatchedJob, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0


@dataclass(frozen=True)
class JobStatus:
    """How a job is.

    Attributes:
        progress: its progress.json, which is its own; None if missing.
        journal: its last lines when it failed.
        now: the host's clock, seconds since the epoch.
    """

    running: bool
    failed: bool
    progress: dict[str, object] | None = None
    journal: tuple[str, ...] = ()
    now: float = 0.0


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
    arguments = ["--quiet", "--service-type=exec", f"--unit={job.unit}"]
    arguments.append(f"--description={job.description}")
    writable = (f"ReadWritePaths={' '.join(job.writable)}",) if job.writable else ()
    # A box that is already serving must not suffer from what is fetched for later.
    modest = () if job.urgent else MODEST
    # With this type it returns when the program runs, and so has its credentials.
    with credentials.handed(job.credentials) as loaded:
        arguments += sandbox.arguments((*job.properties, *writable, *modest, *loaded))
        done = run("systemd-run", *arguments, "--", *job.argv)
    if not done.ok and "already" not in done.err:
        raise SystemExit(f"{job.description}: {done.err.strip()}")


def _start_own(job: Job) -> None:
    """Start a job that has unit files. They are new to systemd, so that it needs no reload."""
    for name, text in job.units.items():
        files.write(systemd.TRANSIENT / name, text, 0o644, durable=False)
    done = run("systemctl", "start", f"{job.unit}.service")
    if not done.ok:
        lines = [line for name in job.units for line in journal.last(name, 2)]
        raise SystemExit(f"{job.description}: {'; '.join(lines) or done.err.strip()}")


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
        now=time.time(),
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
