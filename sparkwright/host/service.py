"""A service as it must run on a host: the record that a release stores as release.json.

The plan renders the record, operations compare it with the host, a switch applies it, and programs
without a plan read it back. The record holds no secret: the API key is in a separate file
(``secrets``).
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib import documents, files, ranks, systemd
from sparkwright.host.lib.nap import Nap
from sparkwright.host.lib.records import dataclass, decode, encode, field
from sparkwright.host.proxy.pool import Pool

#: Format of release.json. A host with releases of another format stays unchanged.
FORMAT = 4
#: Valid names of services and releases, which can't lead out of their directories.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class SmokeRequest:
    """Request for a smoke test of a service, with the expected answers.

    Attributes:
        address, port: the engine's address and port on its host; or a socket's path and 0.
        secrets: file with the API key.
        boot_seconds: longest time until /health answers, in seconds.
        first_answer_seconds: longest time for one answer, in seconds.
        warm_ups: answers requested beyond the first, since the first answers compile kernels.
        proxy: address and port of the service's proxy; None without a proxy.
        certificate: file with the proxy's https certificate; if the file is missing, the proxy
            serves http.
        speculates: whether the engine must draft and accept tokens.
        thinking: whether the model thinks before it answers this request.
        max_tokens: token budget of an answer.
        fail_fast: whether the first crash of a start counts as a failure; otherwise the test waits
            for systemd's restarts.
        follower: whether the cluster's head, on another host, answers for the service.
        metric_names: an engine's name of a metric -> the neutral name (``host/lib/metrics.py``).
        compiled: folder of compiled code below the service's boot caches; empty without a folder.
        key_probe: route of the engine that answers 401 to a request without the key.
        routes: kind of request -> route, for all kinds that the model supports.
        model_files: directory of the model's files.
        adapters: served names of adapters.
    """

    name: str
    unit: str
    address: str
    port: int
    secrets: str
    served_names: tuple[str, ...]
    boot_seconds: int
    first_answer_seconds: int
    warm_ups: int = 0
    proxy: tuple[str, int] | None = None
    speculates: bool = False
    thinking: bool = False
    max_tokens: int = 32
    fail_fast: bool = False
    certificate: str | None = None
    follower: bool = False
    engine: str = ""
    metric_names: dict[str, str] = field(default_factory=dict)
    compiled: str = ""
    key_probe: str = "/v1/models"
    routes: dict[str, str] = field(default_factory=dict)
    model_files: str = ""
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """Result of a check of the short test.

    Attributes:
        detail: the observation.
    """

    name: str
    ok: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class Service:
    """A service of a host, with everything that its start, its smoke test and its rollback need.

    Attributes:
        home: directory of the service on the host.
        release: id of the rendered state; it changes with the Compose file or the unit.
        recipe, tag, models: parts of the release; ``models`` is repository -> commit.
        compose, unit_text: texts of the Compose file and the systemd unit.
        image: name of the image in the host's Docker.
        gate: smoke test that the service must pass to count as started.
        ports: ports on which the service or its proxy listens.
        soak_seconds: time of observation of a switched service after its first answers.
        pool: the service's place behind the host's own proxy.
        second_boot: whether to start the service once more after a start that compiled code, on
            unified memory.
        exclusive, members: group in which only one service runs at a time, and the group's
            services, the default first.
        activate: ``on-request`` if a client's request also activates the service.
        rank: the host's part of a cluster's service; None for a service on one host.
        bridge: interface of the container's network; None for no network or the host's network.
        outgoing: whether the container may open connections.
        contents: name -> text of the files that the container reads; not part of the record.
        secret_names: names of the files with the service's secrets, except the key.
        offload_directory: directory of the releases' KV caches on a disk; None without KV caches on
            a disk.
        nap: way in which the idle engine sleeps; None if the unit stops instead.
    """

    name: str
    home: str
    release: str
    recipe: str
    tag: str
    compose: str
    unit_text: str
    image: str
    gate: SmokeRequest
    models: dict[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    soak_seconds: float = 0.0
    pool: Pool | None = None
    second_boot: bool = False
    exclusive: str | None = None
    members: tuple[str, ...] = ()
    activate: str | None = None
    rank: ranks.RankConfig | None = None
    bridge: str | None = None
    outgoing: bool = False
    contents: dict[str, str] = field(default_factory=dict)
    secret_names: tuple[str, ...] = ()
    offload_directory: str | None = None
    nap: Nap | None = None
    format: int = FORMAT

    @property
    def follower(self) -> bool:
        """Return whether the service runs the release that its cluster's head, on another host,
        requests.
        """
        return self.rank is not None and self.rank.number > 0

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"

    @property
    def unit_path(self) -> str:
        """Path of the unit file."""
        return str(systemd.UNITS / self.unit)

    @property
    def directory(self) -> str:
        """Directory of the release's files."""
        return f"{self.home}/releases/{self.release}"

    @property
    def secrets(self) -> str:
        """Return the path of the 0600 file with the key, beside the releases, since the key
        outlives them.
        """
        return f"{self.home}/secrets.env"

    @property
    def rank_secrets(self) -> str:
        """Path of the 0600 file with the key by which a cluster's ranks authenticate each other."""
        return self.secrets if self.follower else f"{self.home}/ranks.env"

    @property
    def tokens(self) -> dict[str, str]:
        """Paths of the service's secrets except the key, by name."""
        return {name: f"{self.home}/secrets/{name}" for name in self.secret_names}

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Paths of all secrets of the service, the key's path first."""
        return (self.secrets, *self.tokens.values())

    @property
    def mounted(self) -> dict[str, tuple[str, int]]:
        """Return the files that the container reads: path -> text and mode."""
        folder = f"{self.directory}/files"
        return {f"{folder}/{name}": (text, 0o644) for name, text in self.contents.items()}

    @property
    def record(self) -> str:
        """Text of release.json."""
        # Decode the record once, as the host does, so that a whole number in a float field is
        # written as 75.0.
        whole = {**encode(self), "contents": {}}
        return json.dumps(encode(decode(Service, whole)), indent=1) + "\n"

    @property
    def files(self) -> dict[str, tuple[str, int]]:
        """Return the service's own files: path -> text and mode. The last file written completes
        the release.
        """
        texts = {
            "compose.yaml": self.compose, "unit.service": self.unit_text,
            "release.json": self.record,
        }  # fmt: skip
        return {f"{self.directory}/{name}": (text, 0o640) for name, text in texts.items()}


def checked(service: Service, home: str, release: str) -> Service:
    """Return the service if its record belongs to this directory and release.

    Raises:
        ValueError: the record belongs to another directory or release, or has a value that no
            service can have.
    """
    name = home.rpartition("/")[2]
    check_names(name, release)
    gate = service.gate
    if (
        (service.name, service.home, service.release) != (name, home, release)
        or (gate.name, gate.unit, gate.secrets) != (name, service.unit, service.secrets)
        or not 0 <= gate.port < 65536
    ):
        raise ValueError(f"{home}/releases/{release} has the record of another service")
    return service


def check_names(name: str, release: str) -> None:
    """Check that the names of a service and a release can't lead out of a directory.

    Raises:
        ValueError: a name is invalid.
    """
    if not _NAME.fullmatch(name) or not _RELEASE.fullmatch(release):
        raise ValueError(f"{name[:60]!r} with release {release[:60]!r} is not a service")


def kept(home: Path, release: str) -> Service | None:
    """Return a release that this host keeps; None if its record is missing, damaged or of another
    version."""
    document = documents.read(home / "releases" / release / "release.json") or {}
    try:
        right = document.get("format") == FORMAT
        return checked(decode(Service, document), str(home), release) if right else None
    except ValueError:
        return None


def current(home: Path) -> Service | None:
    """Return the release of a service that must run on this host; None for the reasons in ``kept``,
    and for a name that no directory can have.
    """
    try:
        release = files.target(home / "current")
    except OSError:
        return None
    return kept(home, release) if release else None


def records(homes: Mapping[str, Path]) -> dict[str, Service]:
    """Return the release of each service that must run, by name. Damaged records and records of
    another version are left out, since their expected answers are unknown.
    """
    return {name: record for name, home in homes.items() if (record := current(home))}
