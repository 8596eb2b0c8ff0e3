"""What fetching models and images has in common: where from, how fast, by which job."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparkwright.config.secrets import Secret
from sparkwright.operations.changing import MODELS_ROOT, SERVICES_ROOT

#: What a job that fetches needs beyond the sandbox of every unit.
SANDBOX = (
    # What lies there may be of another owner's: it is read, replaced, and given to root.
    "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallFilter=@chown",
    # Earlier downloads lie in homes; they are only read.
    "ProtectHome=read-only",
    # Hub, registry and peers; names are looked up over netlink and sockets; Docker has a socket.
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    # What the host received is counted in /proc/net.
    "ProcSubset=all",
    # Chunks are held whole until they are written, many at once. A library that takes more is
    # killed alone, and what it left undone is fetched without it.
    "MemoryMax=4G",
    "OOMPolicy=continue",
    "TasksMax=512",
)
#: Names of a job's credentials.
HUB_TOKEN, ACCOUNT = "hub-token", "account"
#: For those who name none: hosts then take nothing from each other, and only their own Docker asks.
_THIS_PROCESS = Secret(secrets.token_urlsafe(32))


@dataclass(frozen=True)
class Sources:
    """Where a host takes bytes from, and how.

    Attributes:
        peers: http://address:port of hosts to ask before the source, the best first. Called when
            the fetch is started, since it depends on what all hosts were observed to have.
        peer_token: what peers show each other, and a host's Docker to its peer server.
        peer_port: TCP port on which this host serves others, and its own Docker.
        token: for gated models, or None.
        bundle: directory on the controller, made by ``sparkwright bundle``; nobody else is asked.
        downloader: ``hf_transfer``, ``xet`` or ``http``.
        connections: ranges fetched at once for one file.
        limit: bytes per second; None is no limit.
        headroom: bytes that stay free on the file system.
        adopt: patterns of directories on the host that may hold the same files.
        keep_parts: whether an image's parts stay for other hosts.
    """

    models_root: str = MODELS_ROOT
    services_root: str = SERVICES_ROOT
    peers: Callable[[], tuple[str, ...]] = tuple
    peer_token: Secret = _THIS_PROCESS
    peer_port: int = 18650
    token: Secret | None = None
    bundle: str | None = None
    downloader: str = "hf_transfer"
    connections: int = 16
    limit: float | None = None
    headroom: int = 20 << 30
    adopt: tuple[str, ...] = ()
    keep_parts: Callable[[], bool] = bool

    @property
    def peer_token_file(self) -> str:
        """The file on the host with what peers show each other."""
        return f"{self.services_root}/state/share-token"

    @property
    def credentials(self) -> dict[str, str]:
        """The hub's token, for a job."""
        return {HUB_TOKEN: self.token.value} if self.token else {}

    def request(self, state: str) -> dict[str, Any]:
        """The part of a fetch request that says how, whatever is fetched."""
        return {
            "state_dir": state,
            "owner": "root:root",
            "max_connections": self.connections,
            "headroom": self.headroom,
            "limit": self.limit,
            "peers": self.peers(),
            "peer_token_file": self.peer_token_file,
            "offline": self.bundle is not None,
        }


def job_unit(kind: str, name: str) -> str:
    """One job per thing that is fetched: a later run finds it instead of starting another."""
    return f"sparkwright-{kind}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def job_state(services_root: str, unit: str) -> str:
    """Where the job keeps request and progress."""
    return f"{services_root}/state/{unit}"
