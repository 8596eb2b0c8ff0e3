"""Common parts of fetching models and images: sources, speed, jobs."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from pyinfra.api.host import Host

from sparkwright.config.secrets import Secret, SecretText
from sparkwright.config.templates import properties
from sparkwright.facts.memory import MODELS_ROOT, SERVICES_ROOT, memory
from sparkwright.host.jobs import WatchedJob, credential
from sparkwright.host.lib.records import dataclass, field
from sparkwright.plan.peer_keys import SERVED, THIS_PROCESS, Peer, RunKeys

#: Names of a job's credentials.
HUB_TOKEN, ACCOUNT, PEER_KEYS = "hub-token", "account", "peer-keys"


@dataclass(frozen=True)
class Sources:
    """Sources of a host's downloads, and their settings.

    Attributes:
        peers: function that returns the hosts to query before the source, the best first. The
            function is called when the fetch starts, since its result depends on the content of all
            hosts.
        peer_keys: keys with which peers, peer servers and the host's own Docker authenticate to
            each other.
        peer_port: TCP port on which this host serves other hosts and its own Docker.
        addresses: addresses on which this host serves other hosts; its own Docker uses loopback.
        tls: certificate and key with which this host serves other hosts, PEM; None for plain HTTP.
        token: token for gated models, or None.
        bundle: directory on the controller, made by ``sparkwright bundle``, as the only source.
        downloader: ``hf_transfer``, ``xet`` or ``http``.
        connections: ranges fetched at once for one file.
        limit: bytes per second; None for no limit.
        headroom: bytes that stay free on the file system.
        adopt: patterns of directories on the host that may hold the same files.
        keep_parts: whether an image's parts stay for other hosts.
        environment: environment of the job, such as ``HTTPS_PROXY``; holds no secret.
    """

    models_root: str = MODELS_ROOT
    services_root: str = SERVICES_ROOT
    peers: Callable[[], tuple[Peer, ...]] = tuple
    peer_keys: RunKeys = THIS_PROCESS
    peer_port: int = 18650
    addresses: tuple[str, ...] = ()
    tls: SecretText | None = None
    token: Secret | None = None
    bundle: str | None = None
    downloader: str = "hf_transfer"
    connections: int = 16
    limit: float | None = None
    headroom: int = 20 << 30
    adopt: tuple[str, ...] = ()
    keep_parts: Callable[[], bool] = bool
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> tuple[str, ...]:
        """Return the properties of a job's unit."""
        pairs = " ".join(f"{name}={value}" for name, value in sorted(self.environment.items()))
        sandbox = properties("fetch")
        return (*sandbox, f"Environment={pairs}") if pairs else sandbox

    def peer_credentials(self, name: str) -> dict[str, str]:
        """The peer keys of a job on the named host."""
        return {PEER_KEYS: self.peer_keys.leech(name, self.peers()).value}

    def server_secrets(self, name: str) -> dict[str, str]:
        """Texts of the files of the named host's peer server, by path."""
        result = {self.peer_keys.server_file: self.peer_keys.server(name).value}
        return result | ({self.certificate: self.tls} if self.certificate and self.tls else {})

    @property
    def certificate(self) -> str | None:
        """Return the path of the host's serving certificate; a changed certificate gets another
        path, and thus another server.
        """
        if self.tls is None:
            return None
        return f"{SERVED}/{hashlib.sha256(self.tls.encode()).hexdigest()[:12]}.pem"

    def request(self, job: WatchedJob) -> dict[str, Any]:
        """Return the fields of a fetch request that don't depend on its content."""
        return {
            "state_dir": job.state,
            "max_connections": self.connections,
            "headroom": self.headroom,
            "limit": self.limit,
            "peers": tuple(peer.address for peer in self.peers()),
            "peer_token_file": credential(job.unit, PEER_KEYS),
            "offline": self.bundle is not None,
        }


def defaults(host: Host) -> Sources:
    """Return the hub or registry as the only source, for a host with its own roots."""
    return Sources(memory(host).models_root, memory(host).services_root)


def watched_job(kind: str, name: str, services_root: str) -> WatchedJob:
    """Fetch job of this name: a later run finds this job instead of starting another job."""
    unit = f"sparkwright-{kind}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return WatchedJob(unit, f"{services_root}/state/{unit}")
