"""HAProxy on a host: its files, and how a service leaves it and returns."""

from __future__ import annotations

from dataclasses import dataclass, field

HEALTH_UNIT = "sparkwright-health.service"


#: The only server behind a host's own proxy.
SELF = "self"


@dataclass(frozen=True)
class ProxyRequest:
    """The proxy's files as they must be; without files it is taken away.

    Attributes:
        files: path -> text and mode.
        unit, health: HAProxy's unit, and that of our health program where there is one.
        config: path of haproxy.cfg.
        admin: HAProxy's socket.
        states: the file by which servers keep their state over a reload.
        keep: servers whose state is kept: backend, name, address, port, port of checks, and
            1 for TLS, else 0.
        start: whether what does not run is started now.
        asleep: path of the map of services that sleep, which the host itself writes.
    """

    files: dict[str, tuple[str, int]]
    unit: str
    health: str | None
    config: str
    admin: str
    states: str
    keep: tuple[tuple[str, ...], ...] = ()
    start: bool = True
    asleep: str | None = None


@dataclass(frozen=True)
class ProxySwitch:
    """What of the proxy changes with a switch, in request.json.

    Attributes:
        to: the proxy of the new plan.
        managed: every path that a proxy may have, now or before.
        health, health_path: the health program's unit, and its path.
    """

    to: ProxyRequest
    managed: tuple[str, ...]
    health: str
    health_path: str


@dataclass(frozen=True)
class Pool:
    """A service's place behind its host's proxy, in request.json.

    Attributes:
        admin, master: HAProxy's sockets, of the worker and of the master.
        leave: commands that make load balancers in front send nothing new.
        close: commands that end new requests here.
        open: commands that take requests again.
        server: backend and server.
        notice_seconds: until those in front have seen it.
        drain_seconds: at most, until running requests have ended.
        others: whether other hosts serve the same.
    """

    admin: str
    master: str
    leave: tuple[str, ...]
    close: tuple[str, ...]
    open: tuple[str, ...]
    server: tuple[str, str]
    notice_seconds: float
    drain_seconds: float
    others: bool


@dataclass(frozen=True)
class Sockets:
    """HAProxy's sockets: of the worker that takes new requests, and of the master."""

    admin: str
    master: str


def pool_of(
    proxy: str, sockets: Sockets, notice_seconds: float, drain_seconds: float, *, others: bool
) -> Pool:
    """The place of a service behind the proxy of its name on its own host."""
    return Pool(
        admin=sockets.admin,
        master=sockets.master,
        leave=tuple(leaving(proxy)),
        close=(drain(proxy, SELF),),
        open=(ready(proxy, SELF), *staying(proxy)),
        server=(proxy, SELF),
        notice_seconds=notice_seconds,
        drain_seconds=drain_seconds,
        others=others,
    )


def drain(proxy: str, replica: str) -> str:
    """Send it nothing new; what runs on it runs on. The answer is empty when it was done."""
    return f"set server {proxy}/{replica} state drain"


def ready(proxy: str, replica: str) -> str:
    """Send it requests again, once its health allows."""
    return f"set server {proxy}/{replica} state ready"


def down(proxy: str, replica: str) -> str:
    """Know that it is down, until its checks say otherwise."""
    return f"set server {proxy}/{replica} health down"


def leaving(proxy: str) -> list[str]:
    """Say at ``/health`` that the proxy is about to close; it still takes what comes."""
    return [f"set server stay-{proxy}/stay state maint"]


def staying(proxy: str) -> list[str]:
    """Take ``leaving`` back."""
    return [f"set server stay-{proxy}/stay state ready"]


@dataclass(frozen=True)
class HealthService:
    """A service whose health is reported.

    Attributes:
        port: vLLM's, and health_port: where its health is answered.
        secrets: file with the API key.
        model: a served name.
        patience_seconds: for one token.
    """

    name: str
    port: int
    health_port: int
    secrets: str
    model: str
    patience_seconds: float


@dataclass(frozen=True)
class HealthConfig:
    """What the health program reads.

    Attributes:
        idle_seconds: without a token, after which one is requested from a service.
        state: file that other programs read.
        metric_names: an engine's name of a metric -> the neutral one (``host/lib/metrics.py``).
    """

    services: tuple[HealthService, ...] = field(default_factory=tuple)
    idle_seconds: float = 30.0
    state: str = ""
    metric_names: dict[str, str] = field(default_factory=dict)
