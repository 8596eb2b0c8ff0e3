"""Start jobs on a host, follow their progress, and prove that their results are complete."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyinfra.api.host import Host

from sparkwright.facts.answers import HostError, of_each, typed
from sparkwright.facts.asking import ask
from sparkwright.host import jobs as program
from sparkwright.host import proof
from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.jobs import Job, JobsRequest, JobStatus, WatchedJob
from sparkwright.host.proof import ProofRequest
from sparkwright.operations.lib import runtime
from sparkwright.operations.lib.progress import LIVE
from sparkwright.results.progress import together

#: Seconds between two lines of progress.
_LINE_EVERY = 10
#: Seconds to wait for a fetch; the job itself continues afterwards.
_PATIENCE = 6 * 3600
_ANSWER = dict[str, JobStatus]
_LABEL = "sparkwright-jobs"
#: systemd's lines about the start and end of every unit.
_SYSTEMD = re.compile(
    r"(\S+\.service: )?(Started|Starting|Stopped|Stopping|Main process|Failed with|Consumed)\b"
)


def start(host: Host, jobs: Sequence[Job], secrets: Mapping[str, str] | None = None) -> None:
    """Start jobs on a host, in one remote execution; jobs that already run continue.

    Args:
        secrets: path -> text, written for root alone before any job starts.

    Raises:
        HostError: a job can't be started.
    """
    ask(host, program, JobsRequest(start=tuple(jobs), secrets=dict(secrets or {})), _ANSWER)


def status(
    host: Host, watched: Sequence[WatchedJob], wait: float, jobs: Sequence[Job] = ()
) -> dict[str, JobStatus]:
    """Start ``jobs``, and return the states of jobs after at most ``wait`` seconds, by unit."""
    request = JobsRequest(start=tuple(jobs), watch=tuple(watched), wait=wait)
    answer = ask(host, program, request, _ANSWER, timeout=wait + 120)
    of_each(_LABEL, [job.unit for job in watched], answer)
    return answer


def follow(host: Host, names: Mapping[WatchedJob, str]) -> None:
    """Wait for jobs to end, and show their progress.

    Args:
        names: name of each job in lines and messages.

    Raises:
        HostError: jobs failed; the text has their messages.
    """
    called = {job.unit: name for job, name in names.items()}
    every = 1 if LIVE.on else _LINE_EVERY
    until = time.monotonic() + _PATIENCE
    try:
        while time.monotonic() < until:
            answer = status(host, list(names), every)
            reports = {unit: _progress(job) for unit, job in answer.items()}
            failed = {unit: job for unit, job in answer.items() if job.failed}
            if failed:
                arguments = [
                    _failure(called[unit], job, reports[unit]) for unit, job in failed.items()
                ]
                raise HostError("; ".join(arguments))
            if not any(job.running for job in answer.values()):
                return
            ended = frozenset(called[unit] for unit, job in answer.items() if not job.running)
            fetches = {called[unit]: progress for unit, progress in reports.items()}
            LIVE.fetching(host, together(fetches, ended))
    finally:
        LIVE.remove(host.name)


def task(
    home: str, name: str, watched: WatchedJob, request: str, *, description: str, **more: Any
) -> Job:
    """Return a job that runs a task of the fetch program.

    Args:
        home: the program's directory.
        request: text of the task's request.
        more: further fields of the job.
    """
    file = f"{watched.state}/request.json"
    return Job(
        watched.unit, f"sparkwright: {description}", runtime.command(home, name, file),
        files={file: request}, **more,
    )  # fmt: skip


def brought(
    host: Host, jobs: Mapping[WatchedJob, str], proved: ProofRequest, names: Sequence[str]
) -> list[str]:
    """Wait for jobs, and prove that their models and images exist."""
    follow(host, jobs)
    prove(host, proved)
    return [f"{name} is on the disk and verified" for name in names]


def prove(host: Host, request: ProofRequest, timeout: float = 180) -> None:
    """Have the host prove the requirements of a service.

    Raises:
        HostError: requirements are not met; the text has all faults with their known remedies.
    """
    if problems := ask(host, proof, request, tuple[str, ...], timeout=timeout):
        # A run without faults saves 7 ms: it does not load the patterns of logs.
        from sparkwright.checks.service.log_lines import explained

        raise HostError("; ".join(map(explained, problems)))


def _progress(job: JobStatus) -> FetchProgress | None:
    return None if job.progress is None else typed(_LABEL, FetchProgress, job.progress)


def _failure(name: str, job: JobStatus, progress: FetchProgress | None) -> str:
    lines = [line for line in job.journal if not _SYSTEMD.match(line)]
    message = progress.message if progress and progress.state == "failed" else None
    return f"{name}: {message or (lines[-1] if lines else 'failed without output')}"
