"""Start and watch jobs: transient systemd services that outlive the connection and the controller.

The program runs on the host as root.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from sparkwright.host.lib import documents, files, journal, records, sandbox, systemd, trusted
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.processes import run


@records.dataclass(frozen=True)
class Job:
    """A job to start.

    Attributes:
        unit: name without ``.service``; a running job of this name is followed.
        argv: command of the job.
        files: path -> text, written before the start, readable by root alone.
        credentials: name -> secret. The job finds each secret at ``credential(unit, name)``. The
            secret is in memory only, and is lost when the job ends.
        writable: directories that the job may write to, made if missing; all other directories are
            read-only.
        properties: properties of the unit, as ``Name=value``; they replace or extend the sandbox's
            properties.
        urgent: whether the job may slow down the host's services.
        instead_of: pattern of units that are stopped for the job.
        units: name -> text of unit files that replace the command; ``unit`` is a service among
            them. The name of a unit file must change with its text, since systemd does not reload
            the file.
        directories: directories made before the start, readable by everybody.
        program: directory of the job's program. A running job with another program is stopped, and
            resumes with this program; with None the running job is followed.
    """

    unit: str
    description: str
    argv: tuple[str, ...]
    files: dict[str, str] = records.field(default_factory=dict)
    credentials: dict[str, str] = records.field(default_factory=dict)
    writable: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    urgent: bool = False
    instead_of: str | None = None
    units: dict[str, str] = records.field(default_factory=dict)
    directories: tuple[str, ...] = ()
    program: str | None = None


def credential(unit: str, name: str) -> str:
    """Return the path where a job finds a credential (systemd.exec(5), LoadCredential=)."""
    return f"/run/credentials/{unit}.service/{name}"


@records.dataclass(frozen=True)
class WatchedJob:
    """A job to watch; ``state`` is the directory of its progress.json."""

    unit: str
    state: str | None = None


@records.dataclass(frozen=True)
class JobsRequest:
    """Jobs to start and to wait for.

    Attributes:
        secrets: path -> text, written for root alone before any job starts.
        wait: longest time in seconds to wait for the watched jobs to end.
    """

    start: tuple[Job, ...] = ()
    watch: tuple[WatchedJob, ...] = ()
    secrets: dict[str, str] = records.field(default_factory=dict)
    wait: float = 0.0


@records.dataclass(frozen=True)
class JobStatus:
    """Status of a job.

    Attributes:
        progress: content of the job's progress.json; None if missing.
        journal: last log lines of a failed job.
        now: the host's clock, seconds since the epoch.
    """

    running: bool
    failed: bool
    progress: dict[str, object] | None = None
    journal: tuple[str, ...] = ()
    now: float = 0.0


#: Seconds that a run's secrets in /run are kept.
_LIFE = 2 * 86400
#: A directory in memory that belongs to root.
RUN = "/run"
MODEST = ("Nice=10", "IOSchedulingClass=idle", "OOMScoreAdjust=500")


def start(job: Job) -> None:
    """Start a job; the caller follows a job that is already running."""
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
    # A download for a later deploy must not slow down a host that is serving.
    modest = () if job.urgent else MODEST
    # With this type systemd-run returns once the program runs and has its credentials.
    with _handed(job.credentials) as loaded:
        arguments += sandbox.arguments((*job.properties, *writable, *modest, *loaded))
        done = run("systemd-run", *arguments, "--", *job.argv)
    if not done.ok and "already" not in done.err:
        raise SystemExit(f"{job.description}: {done.err.strip()}")


@contextlib.contextmanager
def _handed(secrets: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield unit properties that load secrets by name, valid while the unit is being started.

    systemd connects to the socket (systemd.exec(5), LoadCredential=), and keeps the secret in
    memory for this unit alone until the unit ends.
    """
    if not secrets:
        yield ()
        return
    import socket  # this import and the next take 15 ms: only jobs with secrets need them
    import tempfile
    import threading

    with contextlib.ExitStack() as stack:
        # Only root may enter the directory.
        path = stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkwright-", dir=RUN))
        for name, text in secrets.items():
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(Path(path, name)))
            server.listen()
            answering = threading.Thread(target=_answer, args=(server, text), daemon=True)
            answering.start()
            stack.callback(answering.join)
            # Wake the thread, even if nobody connected.
            stack.callback(server.shutdown, socket.SHUT_RDWR)
        yield tuple(f"LoadCredential={name}:{path}/{name}" for name in secrets)


def _answer(server: Any, text: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            with server.accept()[0] as connection:
                connection.sendall(text.encode())


def _start_own(job: Job) -> None:
    """Start a job that has unit files. systemd has not loaded these files before, so no reload is
    needed.
    """
    for name, text in job.units.items():
        files.write(systemd.TRANSIENT / name, text, 0o644, durable=False)
    done = run("systemctl", "start", f"{job.unit}.service")
    if not done.ok:
        lines = [line for name in job.units for line in journal.last(name, 2)]
        raise SystemExit(f"{job.description}: {'; '.join(lines) or done.err.strip()}")


def _forget(path: Path) -> None:
    """Remove files in a secret's directory that are older than any job of a run can be."""
    for old in path.parent.iterdir():
        if time.time() - old.stat().st_mtime > _LIFE:
            old.unlink()


def watch(job: WatchedJob) -> JobStatus:
    """Return whether a job still runs, its progress, and its last log lines if it failed."""
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
    """Start the requested jobs, then wait for the watched jobs to end. Returns the jobs' status by
    unit.
    """
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
