"""Collect observations of this host for doctor, and change nothing. The program runs as root.

Every query has its own time limit; on a responsive host, all queries together take half a minute at
most. No key leaves the host: secrets are removed from the whole report.
"""

import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from sparkwright.host.lib import (
    disks,
    docker,
    documents,
    exclusive,
    gpu,
    homes,
    memory,
    metrics,
    ranks,
    systemd,
)
from sparkwright.host.lib import journal as journals
from sparkwright.host.lib.disks import Disk
from sparkwright.host.lib.docker import Container, Docker
from sparkwright.host.lib.gpu import Gpus
from sparkwright.host.lib.http import Health, Server
from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.lib.records import dataclass, decode, encode, field, replace
from sparkwright.host.service import current
from sparkwright.host.smoke import check
from sparkwright.host.watch.state import WatchReport


@dataclass(frozen=True)
class ExaminationRequest:
    """Request for an examination: services with address and port of their engines. The metrics are
    read twice, ``seconds`` apart; ``metric_names`` maps an engine's metric names to neutral names.
    """

    services: dict[str, tuple[str, int]] = field(default_factory=dict)
    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    seconds: float = 5.0
    metric_names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mount:
    """A directory mounted into a container, with its outward links and its LFS pointers."""

    source: str
    target: str
    links: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContainerSeen(Container):
    """A container as Docker reports it; ``command`` is its entry point and arguments."""

    name: str = ""
    exit_code: int = 0
    oom_killed: bool = False
    restarts: int = 0
    restart_policy: str = "no"
    command: tuple[str, ...] = ()
    gpu: bool = True
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True)
class Look:
    """A service's metrics at one time; ``at`` in seconds since the epoch."""

    at: float
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, 0.0)


@dataclass(frozen=True)
class ServiceSeen:
    """Observation of a sparkwright service.

    Attributes:
        unit: systemd's properties.
        log: journal and container log, oldest first.
        gpu_inside: ``nvidia-smi -L`` within the container; None if no container runs.
        metrics: two samples, some seconds apart; fewer if the service reports no metrics.
        stopped: the last stop by request; the service may have been started since then.
        waits: missing ranks of the service's cluster; None if all ranks run or the service has no
            cluster.
        faults: faults in the service's answers.
    """

    unit: dict[str, str]
    health: Health
    log: tuple[str, ...] = ()
    container: ContainerSeen | None = None
    gpu_inside: Outcome | None = None
    metrics: tuple[Look, ...] = ()
    stopped: homes.Stopped | None = None
    waits: str | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examination:
    """Observations of a host.

    Attributes:
        now: the host's clock, seconds since the epoch.
        kernel: lines of the last day about GPU, memory, heat and disks.
        boot_before: lines of the same kind from the previous boot, if it ended without a shutdown.
        others: containers that are not sparkwright's.
        memory: /proc/meminfo in bytes.
        swappiness: the kernel's setting, 0 to 200.
        desktop: whether a desktop runs.
        pressure: resource -> ``some`` and ``full``, percent of the last minute.
        fetches: unit of a running fetch -> seconds since its last written byte.
        docker: Docker's report; None if Docker does not answer.
        ports: speed of each ConnectX port that is up, in Mb/s.
        maintenance: None if the host is not in maintenance.
    """

    now: float
    gpu: Gpus
    services: dict[str, ServiceSeen] = field(default_factory=dict)
    kernel: tuple[str, ...] = ()
    boot_before: tuple[str, ...] = ()
    others: tuple[ContainerSeen, ...] = ()
    disks: dict[str, Disk] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    swappiness: int | None = None
    desktop: bool = False
    pressure: dict[str, dict[str, float]] = field(default_factory=dict)
    docker: Docker | None = None
    fetches: dict[str, float] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    watch: WatchReport | None = None
    maintenance: homes.Maintenance | None = None


#: Largest number of lines of a journal or a container's log, and of characters of a line.
_LINES, _WIDTH = 400, 600
#: Seconds in which a service that seems to hang must make progress: a chunk of a long prompt takes
#: about 16 s on a Spark.
_PATIENCE = 25.0
_LOOK = 2.5
#: Seconds in which an idle service must answer.
_ANSWER = 60
_INSIDE = ("nvidia-smi", "-L")
_KERNEL = re.compile(
    r"NVRM|Xid|Out of memory|oom-kill|oom_reaper|thermal|throttl|I/O error|EXT4-fs error|"
    r"nvme.*(timeout|reset|abort)|Under-?voltage",
    re.IGNORECASE,
)
#: systemd's SD_MESSAGE_JOURNAL_STOP.
_STOPPED = "MESSAGE_ID=d93fb3c9c24d451a97cea615ce59c00b"
_KERNEL_LOG = ("journalctl", "-q", "-k", "--since", "-24h", "-o", "cat", "--no-pager")
_SECRET_NAME = (
    r"(?:key|token|secret|passw(?:or)?d|passphrase|requirepass|masterauth|pwd|credentials?|dsn|"
    r"database_url|(?<![a-z])pass)"
)
#: A secret value after a name that marks it: DATABASE_URL=…, --token=…, --api-key …, "api_key": ….
#: The pattern matches the end of a name, but an option from its first dash, so a hostile text takes
#: no longer to search than any other text.
_NAMED = re.compile(
    rf"(?i)({_SECRET_NAME}['\"]?=['\"]?|"
    rf"(?<![\w-])--[\w-]{{0,64}}?{_SECRET_NAME}['\"]?,?\s+['\"]?(?!--)|(?:bearer|basic)\s+|"
    r"(?:(?:api|access|private|auth|hub|hf)[_-]?(?:key|token)|secret|passw(?:or)?d|passphrase)"
    r"['\"]?\s*:\s*['\"]?)([^\s'\",\]}]+)"
)
#: ``postgres://user:password@host``
_ACCOUNT = re.compile(r"(\w://[^/\s:@]*:)([^/\s@]+)(?=@)")
#: Values that are secrets by their form: tokens of hubs, forges and clouds, API keys, a JWT, and a
#: private key in PEM up to its end, or to the end of a text that is cut off.
_TOKEN = re.compile(
    r"\b(?:(?:hf|gh[oprsu])_[A-Za-z0-9]{16,}|github_pat_\w{16,}|(?:nvapi|glpat)-[\w-]{16,}|"
    r"sk-[\w-]{32,}|A[KS]IA[0-9A-Z]{16})\b|(?<![\w-])eyJ[\w-]{8,}(?:\.[\w-]*){2,4}|"
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-(?!----)[^-]*)*"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_HIDDEN = "(hidden)"


def cut(lines: list[str]) -> list[str]:
    """Return the last lines, each shortened to a bounded length."""
    return [line[:_WIDTH] for line in lines[-_LINES:]]


def journal(unit: str, shown: dict[str, str]) -> list[str]:
    """Read a unit's journal: since the unit's start if it never failed, otherwise of the last six
    hours.
    """
    unfailing = shown.get("ActiveState") == "active" and shown.get("NRestarts") == "0"
    since = shown.get("ExecMainStartTimestamp") if unfailing else None
    return cut(journals.last(unit, _LINES, since=since or "-6h"))


def stranger(seen: dict[str, Any]) -> ContainerSeen:
    """Report a container that is not sparkwright's, without its environment, command line, mounts
    and error texts, which may hold its owner's secrets.
    """
    state = seen["State"]
    return ContainerSeen(
        **{**vars(docker.described(seen)), "release": None},
        name=seen["Name"].lstrip("/"),
        exit_code=state["ExitCode"],
        oom_killed=bool(state.get("OOMKilled")),
        restarts=seen.get("RestartCount", 0),
        restart_policy=seen["HostConfig"]["RestartPolicy"]["Name"] or "no",
    )


def container(seen: dict[str, Any]) -> ContainerSeen:
    """Report a sparkwright container from its ``docker inspect``."""
    config, host = seen["Config"], seen["HostConfig"]
    return replace(
        stranger(seen),
        release=docker.release_of(seen),
        command=(*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])),
        gpu=any(
            "gpu" in group
            for item in host.get("DeviceRequests") or []
            for group in item.get("Capabilities") or []
        )
        or host.get("Runtime") == "nvidia",
        mounts=tuple(
            weights(Path(item["Source"]), item["Destination"])
            for item in seen.get("Mounts") or []
            if item.get("Type") == "bind" and Path(item["Source"]).is_dir()
        ),
    )


def weights(folder: Path, target: str) -> Mount:
    """Find LFS pointers in a mounted directory, and links that are dead or lead out of it."""
    away, pointers = [], []
    for path in sorted(islice(folder.iterdir(), 500)):
        if path.is_symlink():
            real = path.resolve()
            if not real.exists() or folder.resolve() not in real.parents:
                away.append(path.name)
        elif path.suffix == ".safetensors" and path.is_file() and path.stat().st_size < 1024:
            head = path.read_bytes()[:64]
            if head.startswith(b"version https://git-lfs"):
                pointers.append(path.name)
    return Mount(str(folder), target, tuple(away[:20]), tuple(pointers[:20]))


def service(
    name: str, own: ContainerSeen | None, at: tuple[str, int], request: ExaminationRequest
) -> ServiceSeen:
    """Examine a sparkwright service."""
    home, unit = Path(request.services_root, "services", name), homes.unit(name)
    server = ranks.server(home, *at)
    shown = systemd.unit(unit, timeout=10)
    log = journal(unit, shown)
    if own:
        # The journal has the lines that Compose passed on, but not the earlier lines.
        output = docker.docker("logs", "--tail", str(_LINES), own.name, timeout=10)
        earlier = set(log)
        log += [line for line in cut((output.out + output.err).splitlines()) if line not in earlier]
    health = ranks.health(home, server) or Health(None)
    readings = tuple(looks(server, request.seconds, request.metric_names))
    return ServiceSeen(
        unit=ranks.unit(home, shown),
        health=health,
        log=tuple(log),
        container=own,
        gpu_inside=docker.docker("exec", own.name, *_INSIDE, timeout=10)
        if own and own.running
        else None,
        metrics=readings,
        stopped=homes.stopped(home),
        waits=ranks.missing(home),
        faults=tuple(faults(home, readings)) if health.code == 200 else (),
    )


def faults(home: Path, readings: tuple[Look, ...]) -> list[str]:
    """Return the faults in the answers to test requests; empty while the service is busy."""
    record, busy = current(home), bool(readings) and readings[-1][metrics.RUNNING] > 0
    if record is None or record.follower or busy:
        return []
    gate = replace(record.gate, boot_seconds=1, first_answer_seconds=_ANSWER, speculates=False)
    return check.without_proxy(record.name, gate)[0]


def looks(server: Server, seconds: float, names: Mapping[str, str]) -> Iterator[Look]:
    """Yield readings of the metrics, ``seconds`` apart; more readings if requests run without
    progress.
    """
    if (first := metrics.ask(server, names)) is None:
        return
    before = Look(time.time(), first)
    yield before
    until = time.monotonic() + seconds + _PATIENCE
    wait = seconds
    while True:
        time.sleep(wait)
        if (values := metrics.ask(server, names)) is None:
            return
        now = Look(time.time(), values)
        if not now[metrics.RUNNING] or moved(before, now) or time.monotonic() > until:
            yield now
            return
        wait = _LOOK


def moved(before: Look, now: Look) -> bool:
    """Return whether the engine made any progress between two samples."""
    return any(now[name] != before[name] for name in metrics.PROGRESS)


def pressure() -> dict[str, dict[str, float]]:
    """Return ``{"memory": {"some": share of the last minute in percent, "full": ...}}``."""
    names = ("cpu", "memory", "io")
    texts = {name: documents.text(f"/proc/pressure/{name}") or "" for name in names}
    average = re.compile(r"^(some|full) .*avg60=([\d.]+)", re.MULTILINE)
    return {
        name: {match[1]: float(match[2]) for match in average.finditer(text)}
        for name, text in texts.items()
    }


def kernel() -> list[str]:
    """Return the last day's kernel messages about GPU, memory, heat or disks."""
    output = run(*_KERNEL_LOG, "-b", timeout=10)
    if not output.ok or not output.out.strip():
        output = run("dmesg", timeout=10)
    return about_hardware(output.out)


def boot_before() -> list[str]:
    """Return the previous boot's kernel messages about the hardware. The result is empty if that
    boot ended with a shutdown, whose messages are the journal's last lines, or if the journal does
    not outlive a boot.
    """
    ended = run("journalctl", "-q", "-b", "-1", _STOPPED, "-o", "cat", "--no-pager", timeout=10)
    before = run(*_KERNEL_LOG, "-b", "-1", timeout=10)
    return about_hardware(before.out) if before.ok and not ended.out.strip() else []


def about_hardware(text: str) -> list[str]:
    """Select the kernel's log lines that a diagnosis can need."""
    return cut(list(filter(_KERNEL.search, text.splitlines())))


def fetches(models_root: Path) -> dict[str, float]:
    """Return the age of the last written byte of each fetch that runs, by its unit."""
    arguments = ("--plain", "--no-legend", "--state=active", "sparkwright-fetch-*.service")
    shown = run("systemctl", "list-units", *arguments, timeout=10).out
    if not shown.strip():
        return {}
    times = [
        path.stat().st_mtime
        for stage in models_root.glob("*/.staging-*")
        for path in [stage, *stage.rglob("*")]
        if path.exists()
    ]
    age = time.time() - max(times) if times else 0.0
    return dict.fromkeys((line.split()[0] for line in shown.splitlines()), age)


def ports() -> dict[str, int]:
    """Return the speed of each ConnectX port that is up, in Mb/s."""
    result = {}
    for path in sorted(Path("/sys/class/net").glob("en[pP]*np*")):
        with suppress(OSError, ValueError):
            if (path / "operstate").read_text().strip() == "up":
                result[path.name] = int((path / "speed").read_text())
    return result


def keys(services_root: str) -> list[str]:
    """Return every secret of the services, the longest first."""
    paths = Path(services_root).glob("services/*/secrets.env")
    texts = (documents.text(path) or "" for path in paths)
    result = {key.strip() for text in texts for key in documents.pairs(text).values()}
    return sorted((key for key in result if len(key) >= 6), key=len, reverse=True)


def struck(value: Any, secrets: list[str]) -> Any:
    """Return a value with every secret in it removed."""
    if isinstance(value, dict):
        return {key: struck(item, secrets) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        # Search the list as one text: a private key has many lines, and an option's value is the
        # next word. Patterns treat the separator as white space.
        return struck("\x1e".join(value), secrets).split("\x1e")
    if isinstance(value, list):
        return [struck(item, secrets) for item in value]
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = value.replace(secret, _HIDDEN)
    value = _NAMED.sub(rf"\1{_HIDDEN}", _ACCOUNT.sub(rf"\1{_HIDDEN}", value))
    return _TOKEN.sub(_HIDDEN, value)


def main(request: ExaminationRequest) -> Examination:
    """Collect the observations and remove all secrets from them."""
    asleep = exclusive.sleeping(Path(request.services_root, "state"))
    ours = {f"sparkwright-{name}" for name in request.services}
    containers = {}
    for inspected in docker.containers():
        name = inspected["Name"].lstrip("/")
        containers[name] = (container if name in ours else stranger)(inspected)
    info = docker.account_of(docker.get("/info"))
    roots = [request.models_root, request.services_root, "/"]
    with ThreadPoolExecutor(max_workers=8) as pool:
        gpus, dmesg = pool.submit(gpu.ask), pool.submit(kernel)
        before = pool.submit(boot_before)
        services = {
            name: pool.submit(service, name, containers.get(f"sparkwright-{name}"), at, request)
            for name, at in request.services.items()
            if name not in asleep
        }
        seen = Examination(
            now=time.time(),
            gpu=gpus.result(),
            services={name: item.result() for name, item in services.items()},
            kernel=tuple(dmesg.result()),
            boot_before=tuple(before.result()),
            others=tuple(item for name, item in containers.items() if name not in ours),
            disks=disks.file_systems([*([info.root] if info else []), *roots]),
            memory=memory.meminfo(),
            swappiness=memory.swappiness(),
            desktop=memory.desktop(),
            pressure=pressure(),
            docker=info if info and info.version else None,
            fetches=fetches(Path(request.models_root)),
            ports=ports(),
            watch=documents.record(WatchReport, f"{request.services_root}/state/watch.json"),
            maintenance=homes.maintenance(),
        )
    return decode(Examination, struck(encode(seen), keys(request.services_root)))
