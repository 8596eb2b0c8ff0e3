"""Jobs: transient systemd services that outlive connection and controller."""

from __future__ import annotations

from dataclasses import dataclass, field


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
        progress: its progress.json, which is its own; None where there is none.
        journal: its last lines when it failed.
    """

    running: bool
    failed: bool
    progress: dict[str, object] | None = None
    journal: tuple[str, ...] = ()
