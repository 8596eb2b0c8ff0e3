"""HAProxy on a host: its files, and how a service leaves it and returns."""

from __future__ import annotations

from sparkwright.host.lib.records import dataclass, field

#: HAProxy's unit, and that of our health program.
UNIT, HEALTH_UNIT = "sparkwright-gateway.service", "sparkwright-health.service"
#: HAProxy's map of services that sleep, beside its configuration.
ASLEEP_MAP = "asleep.map"


#: Directory of the sockets on which the health of services is asked for.
HEALTH = "/run/sparkwright-health"
#: Suffix of a file beside such a socket, touched when the service begins to serve.
MARK = ".well"
#: The only server behind a host's own proxy.
SELF = "self"


@dataclass(frozen=True)
class ProxyRequest:
    """The proxy's files as they must be; without files it is taken away.

    Attributes:
        files: path -> text and mode.
        config: path of haproxy.cfg.
        admin: HAProxy's socket.
        states: the file by which servers keep their state over a reload.
        keep: servers whose state is kept: backend, name, address, port, port of checks, and
            1 for TLS, else 0.
        start: whether what does not run is started now.
        asleep: path of the map of services that sleep, which the host itself writes.
        managed: every path that a proxy may have, now or before.
    """

    files: dict[str, tuple[str, int]]
    config: str
    admin: str
    states: str
    keep: tuple[tuple[str, ...], ...] = ()
    start: bool = True
    asleep: str | None = None
    managed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pool:
    """A service's place behind the proxy of its name on its own host, in request.json.

    Attributes:
        admin, master: HAProxy's sockets: of the worker that takes new requests, and of the master.
        notice_seconds: until the fleet's addresses have seen that the service leaves.
        drain_seconds: at most, until running requests have ended.
        others: whether other hosts serve the same.
        replica: the service's name among the proxy's servers.
    """

    proxy: str
    admin: str
    master: str
    notice_seconds: float
    drain_seconds: float
    others: bool = False
    replica: str = SELF


@dataclass(frozen=True)
class HealthService:
    """A service whose health is reported.

    Attributes:
        address, port: the engine's; of a socket its path, and 0.
        health: path of the socket where its health is answered; empty for none.
        secrets: file with the API key.
        model: a served name.
        patience_seconds: for one token.
        routes: kinds of requests that the model is asked by, each with its route.
    """

    name: str
    address: str
    secrets: str
    model: str
    patience_seconds: float
    port: int = 0
    health: str = ""
    routes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HealthConfig:
    """Configuration of the health program.

    Attributes:
        metric_names: an engine's name of a metric -> the neutral one (``host/lib/metrics.py``).
    """

    services: tuple[HealthService, ...] = field(default_factory=tuple)
    metric_names: dict[str, str] = field(default_factory=dict)
