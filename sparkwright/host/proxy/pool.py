"""HAProxy on a host: its files, and the pools that services leave and join."""

from sparkwright.host.lib.records import dataclass, field

#: Units of HAProxy and of the health program.
UNIT, HEALTH_UNIT = "sparkwright-gateway.service", "sparkwright-health.service"
#: HAProxy's map of services that sleep, beside its configuration.
ASLEEP_MAP = "asleep.map"
#: Directory of HAProxy's sockets; and sockets of its runtime API: of the worker that takes new
#: requests, and of the master, which also reaches workers from before a reload.
RUNTIME = "/run/sparkwright-gateway"
ADMIN, MASTER = f"{RUNTIME}/admin.sock", f"{RUNTIME}/master.sock"
#: Directory of the sockets that report services' health.
HEALTH = "/run/sparkwright-health"
#: Suffix of a file beside a health socket, touched at each check of a service that is well.
MARK = ".well"
#: The only server behind a host's own proxy.
SELF = "self"


@dataclass(frozen=True)
class ProxyRequest:
    """Files required for the proxy; without files, the proxy is removed.

    Attributes:
        files: path -> text and mode.
        config: path of haproxy.cfg.
        admin: HAProxy's socket.
        states: file that preserves servers' states over a reload.
        keep: servers that keep their state: backend, name, address, port, port of checks, and 1 for
            TLS, otherwise 0.
        start: whether to start units that do not run.
        asleep: path of the map of sleeping services, which the host itself writes.
        managed: every path that a proxy has now or may have had before.
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
    """A service's place behind the proxy of its own host, as in request.json.

    Attributes:
        admin, master: HAProxy's sockets, of the worker for new requests and of the master.
        notice_seconds: seconds until the fleet's addresses send no new requests to the service.
        drain_seconds: longest time for running requests to end, in seconds.
        others: whether other hosts offer the same service.
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
    """A service whose health the program reports.

    Attributes:
        address, port: the engine's address and port; or a socket's path and 0.
        health: path of the socket that reports the service's health; empty for none.
        secrets: file with the API key.
        model: a name under which the model is served.
        patience_seconds: longest time to wait for one token, in seconds.
        routes: kind of request -> route, for all kinds that the model supports.
        sleeps: route that reports whether the engine sleeps; empty for an engine without sleep.
    """

    name: str
    address: str
    secrets: str
    model: str
    patience_seconds: float
    port: int = 0
    health: str = ""
    routes: dict[str, str] = field(default_factory=dict)
    sleeps: str = ""


@dataclass(frozen=True)
class HealthConfig:
    """Configuration of the health program.

    Attributes:
        metric_names: an engine's name of a metric -> the neutral name (``host/lib/metrics.py``).
    """

    services: tuple[HealthService, ...] = field(default_factory=tuple)
    metric_names: dict[str, str] = field(default_factory=dict)
