"""Render the proxy, an HAProxy in front of an engine's replicas, as text. This module opens no
socket and writes no file.

The proxy requires an API key, passes only the engine's client routes, sends a request to the
replica with the fewest requests, and can take a replica out of service without cutting off a
client. A proxy in front of a single replica works in the same way. The address for all models is
also a proxy: it passes requests to the host's own program (``host/models/``), which names the pool
that serves a request.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sparkwright.config.keys import ADDRESS, OWN
from sparkwright.config.secrets import Secret, SecretText
from sparkwright.config.templates import template
from sparkwright.engines import client_routes
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Problems, mistake
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.lib.exclusive import WAKE_SOCKET
from sparkwright.host.lib.records import dataclass, field
from sparkwright.host.models.document import REPEATABLE, WAKE, Door
from sparkwright.host.proxy.pool import ASLEEP_MAP, RUNTIME
from sparkwright.tls.host_certificates import CERTIFICATE
from sparkwright.tls.names import ip_address

#: Seconds after which a client should repeat a request to a sleeping service.
ASLEEP_SECONDS = 60
#: User of the address's program.
USER = "sparkwright-models"
#: Name of the proxy that is the address for all models; no service's name has a dot.
MODELS = "address.models"
#: Name of the proxy in front of Open WebUI.
PAGE = "address.open-webui"
#: Debian's and Ubuntu's public CAs.
PUBLIC_CAS = "/etc/ssl/certs/ca-certificates.crt"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PATH = re.compile(r"/[A-Za-z0-9_./-]*")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Replica:
    """A server behind a proxy.

    Attributes:
        address: address of a host, or path of a Unix socket, which has no port.
        health_port: port of the health check, on the same address. An engine's own ``/health``
            shows only that its loop runs: use a check that generates tokens.
        health: path of the health check's Unix socket, instead of a port.
        tls: name and CA that HAProxy verifies; None if the replica serves http.
        dns: whether DNS resolves the address: HAProxy then resolves the name repeatedly.
    """

    name: str
    address: str
    port: int = 0
    health_port: int = 0
    tls: TlsIdentity | None = None
    dns: bool = False
    health: str | None = None

    @property
    def state(self) -> tuple[str, str, str]:
        """Return the address, the port and the check port as HAProxy's runtime API shows them."""
        if self.port:
            return self.address, str(self.port), str(self.health_port)
        return "-", "0", "0"


@dataclass(frozen=True)
class ModelPool:
    """Replicas of services that serve the same models, behind the address for all models.

    Attributes:
        wakes: names of replicas that a request activates while they sleep.
    """

    name: str
    replicas: tuple[Replica, ...]
    wakes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proxy:
    """A proxy for clients: one address, one port, any number of replicas.

    Attributes:
        bind: address to listen on; ``*`` means all IPv4 addresses.
        health_path: path that answers 200 while the replica's last real generation succeeded.
        exclusive: the service's group; None if the service never sleeps.
        on_request: whether a request activates the service.
        engine_key: whether the proxy sends a replica the engine's key instead of the client's.
        engine: engine whose client routes pass; None if replicas may have any engine.
    """

    name: str
    port: int
    replicas: tuple[Replica, ...]
    bind: str = "*"
    health_path: str = "/health"
    engine_key: bool = False
    exclusive: str | None = None
    on_request: bool = False
    engine: str | None = None

    def paths(self, method: str) -> list[str]:
        """Return the paths without placeholders that the proxy passes."""
        return [path for path in self._routes(method) if "{" not in path]

    def patterns(self, method: str) -> list[str]:
        """Return regular expressions of the paths with placeholders."""
        paths = (path for path in self._routes(method) if "{" in path)
        return [f"^{path.replace('{id}', '[A-Za-z0-9_-]+')}$" for path in paths]

    def _routes(self, method: str) -> list[str]:
        routes = [path for how, path in client_routes(self.engine) if how == method]
        if not self.models:
            return routes
        # Only a POST body names a model. The program itself answers these two routes.
        own = ("/v1/models", "/metrics")
        return [path for path in routes if path in own or (method == "POST" and "{" not in path)]

    @property
    def models(self) -> bool:
        """Return whether the proxy is the address for all models."""
        return self.name == MODELS

    @property
    def page(self) -> bool:
        """Return whether the proxy is Open WebUI's, where users log in with Open WebUI's own
        accounts.
        """
        return self.name == PAGE


class _Path:
    """Path of a file in one of the proxies' folders."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name

    def __get__(self, proxies: object, _: type) -> str:
        return f"{getattr(proxies, self._folder, '')}/{self._name}"


@dataclass(frozen=True)
class Page:
    """Open WebUI beside the address for all models.

    Attributes:
        image: name of the image in the host's Docker.
        url: URL of the address.
        secrets: the API key, and the secret that signs sessions.
        ca: CA that verifies the address; None for public CAs, and for http.
        environment: further variables.
    """

    image: str
    url: str
    secrets: Mapping[str, Secret]
    ca: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Proxies:
    """All proxies of a host: an HAProxy instance beside the distribution's.

    Attributes:
        tls: certificate and key of all proxies, PEM; None for http.
        home: directory of the proxies' files.
        runtime: directory of the sockets; systemd makes and removes the directory.
        user: user of the workers; None keeps the starting user.
        wait_seconds: longest wait of a request if no replica is ready.
        idle_seconds: longest silence of a connection. A prompt of 262144 tokens is read for
            minutes, and an answer without streaming sends no byte before it is complete.
        check_milliseconds: milliseconds between two health checks of a replica.
        wake: socket of the program that activates a service (``host/exclusive/on_request.py``).
        pools: pools behind the address for all models.
        address: configuration of the program behind the address for all models, if any.
        page: Open WebUI beside that address, if any.
        limited: names of keys with rights or limits, which the address enforces: a service's proxy
            accepts their requests only from the address.
    """

    proxies: tuple[Proxy, ...]
    tls: SecretText | None = None
    home: str = "/opt/sparkwright/gateway"
    runtime: str = RUNTIME
    user: str | None = "haproxy"
    wait_seconds: int = 30
    idle_seconds: int = 2 * 3600
    check_milliseconds: int = 2000
    wake: str = WAKE_SOCKET
    pools: tuple[ModelPool, ...] = ()
    limited: tuple[str, ...] = ()
    address: Door | None = None
    page: Page | None = None

    #: HAProxy's configuration: world-readable, without secrets.
    config = _Path("home", "haproxy.cfg")
    #: The Lua action that makes requests wait for a replica.
    waiting_room = _Path("home", "wait_for_server.lua")
    #: The file of ``key_map``: hashes of the clients' keys and their names, 0600.
    keys = _Path("home", "keys.map")
    #: The file of ``engine_map``, with the engine's key, 0600.
    engine = _Path("home", "engine.map")
    #: The file with certificate and key, 0600; it exists while the proxies serve https.
    certificate = _Path("home", CERTIFICATE)
    #: The CAs that verify replicas; the file exists while any replica has a private CA.
    replicas_ca = _Path("home", "tls/replicas.pem")
    #: The runtime API of the worker that takes new requests.
    admin_socket = _Path("runtime", "admin.sock")
    #: The runtime API of the master, which reaches earlier workers after a reload too. Shortly
    #: after a start or reload, the socket refuses or resets connections: try again.
    master_socket = _Path("runtime", "master.sock")
    #: Socket of the pools, for the address's program: root and the program's user can reach it.
    pools_socket = _Path("runtime", "pools/pools.sock")
    #: File with the states of drained and down servers, which is removed after the next reload.
    states = _Path("runtime", "states")

    @property
    def asleep(self) -> str | None:
        """Path of the host's map of sleeping services and the services that run instead; None if no
        service has a group."""
        groups = any(proxy.exclusive for proxy in self.proxies)
        return f"{self.home}/{ASLEEP_MAP}" if groups else None

    @property
    def tls_places(self) -> tuple[str, ...]:
        """Paths of TLS files, if any."""
        return (self.certificate, self.replicas_ca)

    @property
    def tls_files(self) -> dict[str, tuple[str, int]]:
        """Required files of TLS: text and mode, by path."""
        result: dict[str, tuple[str, int]] = {}
        if self.tls:
            result[self.certificate] = (self.tls, 0o600)
        cas = [replica.tls.ca for replica in self.replicas if replica.tls]
        if private := "".join(dict.fromkeys(filter(None, cas))):
            result[self.replicas_ca] = (private, 0o644)
        return result

    @property
    def replicas(self) -> list[Replica]:
        """Every server of all proxies, including servers of pools."""
        return [replica for _, replicas in self.backends for replica in replicas]

    @property
    def backends(self) -> tuple[tuple[str, tuple[Replica, ...]], ...]:
        """Name and servers of every backend with checks."""
        proxies = ((each.name, each.replicas) for each in self.proxies)
        return (*proxies, *((each.name, each.replicas) for each in self.pools))


@dataclass(frozen=True)
class Files:
    """Files of the proxies, by the paths in ``Proxies``."""

    config: str
    waiting_room: str
    unit: str


def render_proxies(proxies: Proxies) -> Files:
    """Render the files of the proxies, except for the keys.

    Raises:
        UserError: the message names every unusable name, address or port.
    """
    Problems(_problems(proxies)).stop()
    context = {
        "proxies": proxies,
        "endpoint": endpoint,
        "public_cas": PUBLIC_CAS,
        "own": OWN,
        "address": ADDRESS,
        "wake": WAKE,
        "repeatable": REPEATABLE,
        "user": USER,
        "asleep_seconds": ASLEEP_SECONDS,
    }
    return Files(
        config=template("gateway/haproxy.cfg.j2").render(context),
        waiting_room=template("gateway/wait_for_server.lua.j2").render(context),
        unit=template("gateway/unit.service.j2").render(context),
    )


def key_hash(key: Secret) -> str:
    """Return the hash of a key, in the form of HAProxy's ``sha2(256),hex``."""
    return hashlib.sha256(key.value.encode()).hexdigest().upper()


def key_map(keys: Mapping[str, Iterable[Secret]]) -> str:
    """Return the map of the keys that the proxies accept: each line has a key's SHA-256 and name.

    The map has hashes, because HAProxy's lookup compares byte by byte and its runtime API prints
    loaded values. The map is a file, because a reload reads files again but not the environment.
    While a name has two values, both keys are valid, so a key can change without an interruption; a
    name without a value has no valid key.
    """
    return "".join(f"{key_hash(key)} {name}\n" for name, some in keys.items() for key in some)


def engine_map(key: Secret, address: Secret | None = None) -> str:
    """Return the map with the key of the host's engines, and the key that the address sends to
    proxies of services. The configuration is world-readable, so the keys are in this map.
    """
    return f"engine {key.value}\n" + (f"{ADDRESS} {address.value}\n" if address else "")


# --- For the runtime API ------------------------------------------------------------------------


def kept_servers(proxies: Proxies) -> list[tuple[str, ...]]:
    """Return the servers whose state a reload must keep: backend, server, address, port, port of
    checks, and 1 for TLS, otherwise 0.
    """
    servers: list[tuple[str, ...]] = [
        (name, replica.name, *replica.state, str(int(bool(replica.tls))))
        for name, replicas in proxies.backends
        for replica in replicas
    ]
    servers += [
        (f"stay-{each.name}", "stay", "127.0.0.1", "1", "0", "0") for each in proxies.proxies
    ]
    return servers


# --- Details -----------------------------------------------------------------------------------


def endpoint(address: str, port: int) -> str:
    if address.startswith("/"):
        return f"unix@{address}"
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _problems(proxies: Proxies) -> Iterator[Finding]:
    for path in (proxies.home, proxies.runtime):
        if not _PATH.fullmatch(path):
            yield mistake("proxies", f"{path!r} is not a path", "use letters, digits and ._-/")
    if not proxies.proxies:
        yield mistake("proxies", "the host has no proxy", "add a proxy")
    yield from _twice("proxies", "proxy", (proxy.name for proxy in proxies.proxies))
    yield from _twice("proxies", "port", (str(proxy.port) for proxy in proxies.proxies))
    for proxy in proxies.proxies:
        where = f"proxies: {proxy.name}"
        yield from _named(where, proxy.name)
        bind = "0.0.0.0" if proxy.bind == "*" else proxy.bind
        yield from _addressed(where, bind, (proxy.port,))
        if not _PATH.fullmatch(proxy.health_path):
            yield mistake(where, f"{proxy.health_path!r} is not a path", "use a path like /health")
        yield from _replicas(where, proxy.replicas)
    for pool in proxies.pools:
        yield from _named(f"proxies: {pool.name}", pool.name)
        yield from _replicas(f"proxies: {pool.name}", pool.replicas)


def _replicas(where: str, replicas: Sequence[Replica]) -> Iterator[Finding]:
    if not replicas:
        yield mistake(where, "the pool has no replica", "add a replica")
    yield from _twice(where, "replica", (replica.name for replica in replicas))
    for replica in replicas:
        own = f"{where}: {replica.name}"
        yield from _named(where, replica.name)
        for path in filter(None, (None if replica.port else replica.address, replica.health)):
            if not _PATH.fullmatch(path):
                yield mistake(own, f"{path!r} is not a path", "use a path like /run/http.sock")
        if replica.port:
            yield from _addressed(own, replica.address, (replica.port, replica.health_port))
        if replica.tls:
            yield from _named(own, replica.tls.name or "")


def _named(where: str, name: str) -> Iterator[Finding]:
    if not _NAME.fullmatch(name):
        yield mistake(where, f"{name!r} is not a valid name", "use letters, digits and ._-")


def _addressed(where: str, address: str, ports: Sequence[int]) -> Iterator[Finding]:
    if not is_address(address):
        yield mistake(
            where, f"{address!r} is not a valid address", "write an IP address or a host's name"
        )
    for port in ports:
        if not 1 <= port <= 65535:
            yield mistake(where, f"{port} is not a port", "use 1 to 65535")


def is_address(text: str) -> bool:
    """Return whether a text is exactly an IP address or a host's name."""
    return ip_address(text) is not None or _HOST_NAME.fullmatch(text) is not None


def _twice(where: str, kind: str, names: Iterable[str]) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if count > 1:
            yield mistake(where, f"{kind} {name} appears {count} times", f"use each {kind} once")
