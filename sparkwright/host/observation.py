"""Observation of a host: hardware, driver, Docker, disks, services, models, in one question."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.lib.addresses import Reach, Reached
from sparkwright.host.lib.disks import Disk
from sparkwright.host.lib.docker import Container, Docker
from sparkwright.host.lib.exclusive import Active
from sparkwright.host.lib.gpu import Gpus
from sparkwright.host.lib.homes import Maintenance, Stopped
from sparkwright.host.lib.packages import Package
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.lib.trusted import ExposedPath
from sparkwright.host.lock import Owner
from sparkwright.host.proof import ModelAt, Versions


@dataclass(frozen=True)
class ObservationRequest:
    """Request for additions to every host's observation. All are optional: no plan is needed.

    Attributes:
        directories, files: paths whose owner, mode and content are reported.
        texts: small files whose text is reported, to show changes; never one with a secret.
        images: names in Docker.
        stores: directories of images' parts -> digest of the image, in hex.
        ports: TCP ports whose listeners are reported.
        units: systemd units beside those of the services.
        services: names of our services -> the release that is planned.
        packages: packages of the distribution, by name, each with a program of that name.
        http_proxy: by which they would be had, where it is not apt's own setting; one at most.
        reach: other hosts that this one is to reach.
    """

    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    models: tuple[ModelAt, ...] = ()
    stores: dict[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    units: tuple[str, ...] = ()
    services: dict[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    http_proxy: tuple[str, ...] = ()
    reach: tuple[Reach, ...] = ()


@dataclass(frozen=True)
class Distribution:
    """Operating system of a host.

    Attributes:
        id, version: of /etc/os-release, e.g. ``ubuntu`` and ``24.04``.
        dgx: whether it is DGX OS, which calls itself Ubuntu there.
    """

    id: str = ""
    version: str = ""
    dgx: bool = False

    @property
    def kind(self) -> str:
        """``dgx``, or its id."""
        return "dgx" if self.dgx else self.id

    @property
    def major(self) -> int:
        """``24.04`` -> 24; 0 where it has no number."""
        first = self.version.partition(".")[0]
        return int(first) if first.isascii() and first.isdigit() and len(first) < 6 else 0


@dataclass(frozen=True)
class Memory:
    """MemTotal, MemAvailable and SwapTotal in bytes, and whether a desktop takes its part."""

    total: int
    available: int
    swap: int = 0
    desktop: bool = False


@dataclass(frozen=True)
class FileState:
    """A file: sha256 of its content in hex, mode and owner."""

    sha256: str
    mode: int
    uid: int = 0


@dataclass(frozen=True)
class DirectoryState:
    """State of a directory's path; ``is_directory`` is False for a file."""

    mode: int
    uid: int
    is_directory: bool = True


@dataclass(frozen=True)
class ServiceState:
    """State of a sparkwright service on a host.

    Attributes:
        current: id of the release that ``current`` points to.
        good: id of the last release that gave real answers.
        format: of the current release's record, 0 where it has none; None without a release.
        compose, record, unit: sha256 of the planned release's compose file and release.json, and of
            the installed unit.
        newest: mtime of unit and secrets, the later of both, seconds since the epoch.
        stopped: by whom it was stopped last; it may have been started since.
        asleep: whether a boot passes it by, since another one of its group runs.
    """

    current: str | None = None
    good: str | None = None
    format: int | None = None
    compose: str | None = None
    record: str | None = None
    unit: str | None = None
    secrets: FileState | None = None
    newest: float = 0.0
    container: Container | None = None
    stopped: Stopped | None = None
    asleep: bool = False


@dataclass(frozen=True)
class Listener:
    """Process on a port; ``container`` is ``name restart-policy`` if it is a container."""

    command: str
    cgroup: str
    container: str | None = None


@dataclass(frozen=True)
class Observation:
    """Everything observed on a host. The second block is empty where sudo does not work.

    Attributes:
        time: the host's clock, seconds since the epoch.
        user: who logs in.
        sudo: why the look could not be taken as root; None when it was.
        docker_socket: whether that user may talk to Docker.
        docker_kind: snap, desktop, rootless or podman, where it is one of these.
        system_state: systemd's own: running, degraded; None when it does not answer.
        disks: by path of the request's roots.
        exposed: what another user than root may change above one of these roots, or the root.
        models: directory -> why it does not hold its commit; None when it does.
        partial: directory -> bytes of a fetch that is not complete.
        stores: directories whose parts of an image are complete.
        runtimes: names of the fetch program's installations.
        ports: port -> who listens.
        units: unit -> systemd's properties.
        unit_files: our units' files.
        gpu_checks: image -> what its proof of the GPU was made with.
        last_lock: token of the run that held the host last.
        switching: whether a switch to other releases is under way.
        packages: by name, what is there or could be.
        addresses: interface -> its addresses that others may use, IPv4 first.
        reached: other hosts by name, and where they were reached.
        maintenance: who has taken the host out of every pool; None where nobody has.
        active: group of exclusive services -> the one that was activated last.
    """

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
    gpu: Gpus
    toolkit: Outcome
    compose: Outcome
    systemd_version: int | None
    system_state: str | None = None
    distribution: Distribution = field(default_factory=Distribution)

    docker_kind: str | None = None
    docker: Docker | None = None
    docker_disk: Disk | None = None
    images: dict[str, bool] = field(default_factory=dict)
    models: dict[str, str | None] = field(default_factory=dict)
    partial: dict[str, int] = field(default_factory=dict)
    stores: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    ports: dict[int, Listener] = field(default_factory=dict)
    services: dict[str, ServiceState] = field(default_factory=dict)
    units: dict[str, dict[str, str]] = field(default_factory=dict)
    directories: dict[str, DirectoryState | None] = field(default_factory=dict)
    unit_files: tuple[str, ...] = ()
    files: dict[str, FileState | None] = field(default_factory=dict)
    texts: dict[str, str | None] = field(default_factory=dict)
    gpu_checks: dict[str, Versions] = field(default_factory=dict)
    lock: Owner | None = None
    last_lock: str | None = None
    switching: bool = False
    exposed: tuple[ExposedPath, ...] = ()
    packages: dict[str, Package] = field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reached: dict[str, Reached] = field(default_factory=dict)
    maintenance: Maintenance | None = None
    active: dict[str, Active] = field(default_factory=dict)
