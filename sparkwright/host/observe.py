"""Read all facts of a host that the roles need, in one run, without changing the host.

A fact that can't be read becomes None or the failing command's error text, never an exception: a
failed observation would show nothing.
"""

import os
import pwd
import re
import shutil
import sys
import time
from pathlib import Path

from sparkwright.host.lib import (
    addresses,
    disks,
    docker,
    documents,
    exclusive,
    files,
    gpu,
    homes,
    memory,
    packages,
    receipt,
    systemd,
    trusted,
)
from sparkwright.host.lib.addresses import Reach, Reached
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.disks import Disk
from sparkwright.host.lib.docker import Container, Docker
from sparkwright.host.lib.gpu import Gpus
from sparkwright.host.lib.packages import Package
from sparkwright.host.lib.processes import Outcome, Running, run
from sparkwright.host.lib.records import dataclass, field
from sparkwright.host.lock import Owner
from sparkwright.host.proof import ModelAt, Versions


@dataclass(frozen=True)
class ObservationRequest:
    """Request for additions to every host's observation. All fields are optional, so no plan is
    needed.

    Attributes:
        directories, files: paths whose owner, mode and content are reported.
        texts: small files whose text is reported to show changes; never a file with a secret.
        images: names in Docker.
        stores: directory of an image's parts -> digest of the image in hex.
        ports: TCP ports whose listeners are reported.
        units: further systemd units.
        services: name of a service -> its planned release.
        packages: names of packages of the distribution; each has a program of the same name.
        http_proxy: proxy for the packages' download, if apt has none configured; at most one proxy.
        reach: other hosts that this host must reach.
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
        id, version: values of /etc/os-release, e.g. ``ubuntu`` and ``24.04``.
        dgx: whether the system is DGX OS, whose /etc/os-release names Ubuntu.
    """

    id: str = ""
    version: str = ""
    dgx: bool = False


@dataclass(frozen=True)
class Memory:
    """MemTotal, MemAvailable and SwapTotal in bytes, and whether a desktop also uses memory."""

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
        good: id of the last release that passed its smoke test.
        format: format number of the current release's record, 0 without a number; None without a
            release.
        rank: whether the current release belongs to a rank of a cluster.
        compose, record, unit: sha256 of the planned release's compose file and release.json, and of
            the installed unit.
        files: sha256 of the files that the planned release's container reads, by name.
        tokens: files of the service's secrets except the key, by name.
        newest: latest mtime of the unit and the secrets, in seconds since the epoch.
        stopped: the last stop by request; the service may have been started since.
        asleep: whether boots skip the service, since another service of its group runs.
    """

    current: str | None = None
    good: str | None = None
    format: int | None = None
    rank: bool = False
    compose: str | None = None
    record: str | None = None
    unit: str | None = None
    secrets: FileState | None = None
    files: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, FileState] = field(default_factory=dict)
    newest: float = 0.0
    container: Container | None = None
    stopped: homes.Stopped | None = None
    asleep: bool = False


@dataclass(frozen=True)
class Listener:
    """Process on a port; ``container`` is ``name restart-policy`` if it is a container."""

    command: str
    cgroup: str
    container: str | None = None


@dataclass(frozen=True)
class Observation:
    """Everything observed on a host. The second block of fields is empty if sudo does not work.

    Attributes:
        time: the host's clock, seconds since the epoch.
        user: name of the user who logs in.
        sudo: why the observation could not run as root; None if it ran as root.
        docker_socket: whether the user who logs in may use Docker's socket.
        docker_kind: snap, desktop, rootless or podman; None for Docker's own engine.
        system_state: systemd's state, e.g. running or degraded; None if systemd does not answer.
        disks: file systems by requested root.
        exposed: a root, or a path above it, that a user other than root may change.
        models: directory -> why the directory does not hold its commit, or None.
        partial: directory -> bytes of an incomplete fetch.
        stores: directories that hold all parts of their image.
        runtimes: names of the fetch program's installations.
        ports: port -> its listener.
        units: unit -> systemd's properties.
        unit_files: files of sparkwright's units.
        gpu_holders: programs that compute on a GPU.
        gpu_checks: image -> versions with which its GPU proof was made.
        last_lock: token of the last run that locked the host.
        switching: whether a switch to other releases is under way.
        packages: installed or installable packages, by name.
        addresses: interface -> its addresses that other hosts may use, IPv4 first.
        reached: other hosts by name, with the address where each was reached.
        maintenance: the maintenance mark; None if the host is not in maintenance.
        active: exclusive group -> the service that was activated last.
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
    gpu_holders: tuple[str, ...] = ()
    gpu_checks: dict[str, Versions] = field(default_factory=dict)
    lock: Owner | None = None
    last_lock: str | None = None
    switching: bool = False
    exposed: tuple[trusted.ExposedPath, ...] = ()
    packages: dict[str, Package] = field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reached: dict[str, Reached] = field(default_factory=dict)
    maintenance: homes.Maintenance | None = None
    active: dict[str, exclusive.Active] = field(default_factory=dict)


#: Directories in which the docker command looks for plugins, in its order.
COMPOSE_PLACES = ("/usr/local/lib", "/usr/local/libexec", "/usr/lib", "/usr/libexec")


def compose_command() -> list[str]:
    """Return the command of Compose: the plugin itself if installed in a usual place, since this is
    twice as fast as through docker. A plugin in a user's home does not count, since units run it as
    root.
    """
    if shutil.which("docker"):
        for base in COMPOSE_PLACES:
            program = f"{base}/docker/cli-plugins/docker-compose"
            if os.access(program, os.X_OK):
                return [program, "version", "--short"]
    return ["docker", "compose", "version", "--short"]


def host_memory() -> Memory:
    """Read the host's memory from /proc: on a GB10 the figures of all other sources are wrong."""
    values = memory.meminfo()
    return Memory(
        total=values.get("MemTotal", 0),
        available=values.get("MemAvailable", 0),
        swap=values.get("SwapTotal", 0),
        desktop=memory.desktop(),
    )


def distribution() -> Distribution:
    """Return the operating system from /etc/os-release, or DGX OS from its own files."""
    release = documents.pairs(documents.text("/etc/os-release") or "")
    return Distribution(
        id=release.get("ID", "").strip("\"'"),
        version=release.get("VERSION_ID", "").strip("\"'"),
        dgx=any(Path(marker).exists() for marker in ("/etc/dgx-release", "/etc/fastos-release")),
    )


def clock_synchronised() -> bool:
    """Return whether the clock is synchronised, as timedatectl decides (adjtimex, maximum error
    below 16 s) or by timesyncd's mark.
    """
    if Path("/run/systemd/timesync/synchronized").exists():
        return True
    import ctypes  # ctypes is rarely needed

    timex = (ctypes.c_long * 32)()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return False
    return state >= 0 and timex[3] < 16_000_000


def file_state(path: Path | str) -> FileState | None:
    """Return the state of a small managed file; None if it is missing."""
    digest = documents.digest(path)
    stat = Path(path).stat() if digest else None
    return FileState(digest, stat.st_mode & 0o777, stat.st_uid) if digest and stat else None


def service_state(home: Path, planned: str) -> ServiceState:
    """Return the files, container and times of a sparkwright service."""
    secrets, unit_path = home / "secrets.env", systemd.UNITS / homes.unit(home.name)
    release, current = home / "releases" / planned, files.target(home / "current")
    tokens = [path for path in (home / "secrets").glob("*") if path.is_file()]
    record = documents.read(home / "releases" / current / "release.json") if current else None
    number = (record or {}).get("format")
    times = (path.stat().st_mtime for path in (secrets, unit_path, *tokens) if path.exists())
    return ServiceState(
        current=current,
        good=files.target(home / "good"),
        format=(number if isinstance(number, int) else 0) if current else None,
        rank=bool((record or {}).get("rank")),
        compose=documents.digest(release / "compose.yaml"),
        record=documents.digest(release / "release.json"),
        unit=documents.digest(unit_path),
        secrets=file_state(secrets),
        files={path.name: documents.digest(path) or "" for path in (release / "files").glob("*")},
        tokens={path.name: state for path in tokens if (state := file_state(path))},
        newest=max(times, default=0.0),
        container=docker.own_container(home.name),
        stopped=homes.stopped(home),
        asleep=(home / exclusive.ASLEEP).exists(),
    )


def ports(wanted: tuple[int, ...]) -> dict[int, Listener]:
    """Return the listeners on the requested ports, by port."""
    listeners = {}
    for line in Running("ss", "-Hltnp").outcome().out.splitlines() if wanted else ():
        # LISTEN 0 4096 0.0.0.0:8000 0.0.0.0:* users:(("haproxy",pid=7,fd=5)): a process can choose
        # any name.
        match = re.match(r"\S+ +\d+ +\d+ +\S+:(\d+) (?:.*,pid=(\d+),fd=\d+\)\)$)?", line.strip())
        if match and int(match[1]) in wanted:
            process, port = f"/proc/{match[2]}", int(match[1])
            command = (documents.text(f"{process}/comm") or "unknown").strip()
            cgroup = documents.text(f"{process}/cgroup") or ""
            listeners[port] = Listener(command, cgroup, container_at(port, command, cgroup))
    return listeners


def container_at(port: int, command: str, cgroup: str) -> str | None:
    """Return ``name restart-policy`` of the container that listens on a port; None without a
    container.
    """
    match = re.search(r"docker[-/]([0-9a-f]{64})", cgroup)
    name = match[1] if match else None
    if command in ("docker-proxy", "dockerd"):  # dockerd listens without "userland-proxy"
        published = (
            listed["Id"]
            for listed in docker.get("/containers/json") or []
            if any(own.get("PublicPort") == port for own in listed["Ports"])
        )
        name = next(published, None)
    inspected = docker.container(name) if name else None
    if not inspected:
        return None
    policy = inspected["HostConfig"]["RestartPolicy"]["Name"] or "no"
    return f"{inspected['Name'].lstrip('/')} {policy}"


def as_root(request: ObservationRequest) -> dict[str, Any]:
    """Observe facts that only root can read: managed files, Docker, listeners on ports."""
    names = [*map(homes.unit, request.services), *request.units]
    properties = systemd.showing(*names) if names else None
    state = Path(request.services_root, "state")
    services = Path(request.services_root, "services")
    runtimes = Path(request.services_root, "runtime").glob("*")
    units = systemd.UNITS.glob("sparkwright-*.service")
    models = {model.directory: model.commit for model in request.models}
    info = docker.get("/info")
    last_owner = documents.record(Owner, state / "lock-last.json")
    # Images with parts that are kept for other hosts.
    stores = (at for at, digest in request.stores.items() if receipt.check(at, digest) is None)
    # Paths above root's directories that another user may change.
    roots = (request.models_root, request.services_root, str(systemd.UNITS))
    exposed = [path for root in roots if (path := trusted.exposed(root))]
    return {
        "docker": docker.account_of(info),
        "docker_disk": info and disks.disk(docker.store(info)),
        "docker_kind": docker.kind(info),
        "images": {name: docker.image(name) is not None for name in request.images},
        "models": {path: receipt.check(path, commit) for path, commit in models.items()},
        "partial": {path: partial(Path(path)) for path in models},
        "stores": tuple(stores),
        "runtimes": tuple(sorted(path.name for path in runtimes if trusted.exposed(path) is None)),
        "exposed": tuple({path.path: path for path in exposed}.values()),
        "ports": ports(request.ports),
        "files": {path: file_state(path) for path in request.files},
        "texts": {path: documents.text(path) for path in request.texts},
        "services": {
            name: service_state(services / name, planned)
            for name, planned in request.services.items()
        },
        "directories": {path: directory(path) for path in request.directories},
        "unit_files": tuple(sorted(path.name for path in units)),
        "lock": documents.record(Owner, state / "lock.json"),
        "last_lock": last_owner and last_owner.token,
        "switching": homes.switching(state),
        "maintenance": homes.maintenance(),
        "active": exclusive.active(state),
        "gpu_checks": documents.record(dict[str, Versions], state / "gpu-check.json") or {},
        "units": systemd.shown(properties.outcome().out) if properties else {},
    }


def partial(path: Path) -> int:
    """Return the bytes on the disk of an incomplete model; the stage is beside the model.

    Files of another user do not count: a fetch replaces them with copies.
    """
    files = (
        file.lstat()
        for folder in (path.with_name(f".staging-{path.name}"), path)
        if folder.is_dir()
        for file in folder.rglob("*")
    )
    return sum(stat.st_blocks * 512 for stat in files if trusted.why(stat) is None)


def directory(path: str) -> DirectoryState | None:
    """Return the state of a directory's path; None if nothing exists there."""
    folder = Path(path)
    try:
        stat = folder.stat()
    except OSError:
        return None
    return DirectoryState(stat.st_mode & 0o7777, stat.st_uid, folder.is_dir())


def may_use_docker(user: str) -> bool:
    """Return whether this user may use Docker without sudo after a login."""
    try:
        account = pwd.getpwnam(user)
        socket = Path(docker.place()).stat()
    except (KeyError, OSError):
        return False
    if account.pw_uid in (0, socket.st_uid):
        return True
    groups = os.getgrouplist(user, account.pw_gid)
    return bool(socket.st_mode & (0o020 if socket.st_gid in groups else 0o002))


def main(request: ObservationRequest) -> Observation:
    """Observe the host."""
    root = os.geteuid() == 0
    gpus = gpu.Question((*gpu.IDENTITY, *gpu.NAMES, "memory.used"))
    holders = Running("nvidia-smi", *gpu.HOLDERS)
    toolkit = Running("nvidia-ctk", "--version")
    compose = Running(*compose_command())
    programs = {name: packages.Question(name, *request.http_proxy) for name in request.packages}
    interfaces = addresses.Question()
    manager = systemd.showing(fields="Version,SystemState")
    user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    caches = (path for path in request.directories if "/sparkwright-kv/" in path)
    root_only = as_root(request) if root else {}
    properties = documents.pairs(manager.outcome().out)
    version = re.match(r"\d+", properties.get("Version", ""))
    return Observation(
        time=time.time(),
        user=user,
        python=sys.version_info[:2],
        architecture=os.uname().machine,
        kernel=os.uname().release,
        clock_synchronised=clock_synchronised(),
        memory=host_memory(),
        disks={
            path: disks.disk(path) for path in (request.models_root, request.services_root, *caches)
        },
        docker_socket=may_use_docker(user),
        docker_found=shutil.which("docker") is not None,
        sudo=None if root else run("sudo", "-n", "true", timeout=10).message or "sudo failed",
        gpu=gpus.answer(),
        gpu_holders=gpu.holders(holders.outcome().out),
        toolkit=toolkit.outcome(),
        compose=compose.outcome(),
        systemd_version=int(version[0]) if version else None,
        system_state=properties.get("SystemState"),
        distribution=distribution(),
        addresses=interfaces.answer(),
        reached=addresses.reached(request.reach),
        packages={name: question.answer() for name, question in programs.items()},
        **root_only,
    )
