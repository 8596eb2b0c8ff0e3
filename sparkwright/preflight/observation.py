"""What a observed saw of a host, typed. Written by roles/preflight/host/observed.py on the host."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Seen(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Command(_Seen):
    """A command's outcome. ``code`` is None when it hung or is not installed."""

    found: bool
    code: int | None
    out: str
    err: str


class Disk(_Seen):
    """A file system; ``free`` in bytes, ``exists`` whether the asked path is there already."""

    device: int
    free: int
    exists: bool
    read_only: bool


class Memory(_Seen):
    """In bytes."""

    total: int
    available: int


class Docker(_Seen):
    """Docker's own account of itself."""

    version: str | None
    root: str
    runtimes: list[str]
    driver: str | None


class Container(_Seen):
    """One of our containers, as Docker has it. ``created`` is RFC 3339."""

    id: str
    running: bool
    created: str
    release: str | None
    image: str


class ServiceState(_Seen):
    """What is there of one of our services.

    Attributes:
        current: id of the release that ``current`` points to.
        good: id of the last release that gave real answers.
        compose, unit, secrets: sha256 of the wanted release's file, the unit and the secrets.
        newest: mtime of unit and secrets, the later of both, seconds since the epoch.
    """

    current: str | None
    good: str | None = None
    compose: str | None
    unit: str | None
    secrets: str | None
    secrets_mode: str | None
    newest: float
    container: Container | None


class Listener(_Seen):
    """Who listens on a port; ``container`` is ``name restart-policy`` where it is one."""

    command: str
    cgroup: str
    container: str | None = None


class Probe(_Seen):
    """Everything one observed says of a host. The last block is None where sudo does not work."""

    time: float
    user: str
    python: tuple[int, int]
    architecture: str
    kernel: str
    clock_synchronised: bool
    memory: Memory
    disks: dict[str, Disk]
    docker_socket: bool
    docker_found: bool
    sudo: str | None
    gpu: Command
    toolkit: Command
    compose: Command
    systemd: dict[str, str]
    systemd_version: int | None

    docker: Docker | None = None
    docker_disk: Disk | None = None
    images: dict[str, bool] = {}
    models: dict[str, str | None] = {}
    partial: dict[str, int] = {}
    stores: list[str] = []
    runtimes: list[str] = []
    ports: dict[str, Listener] = {}
    services: dict[str, ServiceState] = {}
    units: dict[str, dict[str, str]] = {}
    directories: dict[str, str | None] = {}
    unit_files: list[str] = []
    files: dict[str, str | None] = {}
    gpu_check: str | None = None
    lock: dict[str, Any] | None = None
    last_lock: str | None = None
    switching: bool = False


def parse_probe(data: Any) -> Probe:
    """Validate a observed's answer."""
    return Probe.model_validate(data)
