"""Requests without the key, sent from the controller to a host's ports over the network.

Each inference route of every engine gets an empty object without a key and with a wrong key, so
that nothing is generated even if the route requires no key. Ports that only the host may use must
refuse a connection.
"""

import secrets
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from sparkwright.config import settings, tls
from sparkwright.engines import inference_routes
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.host.lib import addresses, bounded
from sparkwright.host.service import CheckResult
from sparkwright.plan.plan import HostPlan

CHECK = "outside"
#: Statuses of a server that refuses the request or lacks the route.
_REFUSALS = (401, 404)
#: Seconds for one connection, and for all requests to a host.
_CONNECT, _ALL = 2.0, 15.0
_AT_ONCE = 8
#: Largest number of bytes to read of an answer's body: the status is enough.
_HEAD = 1024


@dataclass(frozen=True)
class Entrance:
    """Address at which neighbours reach a service of a host.

    Attributes:
        name: name of the service, or of the address of all models.
        bind, port: address and port for clients; port is None if only the host itself connects.
        closed: ports that only the host itself may reach.
        https: whether clients connect over https.
    """

    name: str
    bind: str
    port: int | None
    closed: tuple[int, ...] = ()
    https: bool = False


@dataclass(frozen=True)
class Outside:
    """Result of this machine's requests to an address for clients.

    Attributes:
        result: None if unknown.
        note: reason why the result is unknown.
        closed: address and port that refused a connection.
    """

    name: str
    result: CheckResult | None
    note: str = ""
    closed: tuple[str, int] | None = None


def entrances(plan: HostPlan) -> tuple[Entrance, ...]:
    """Addresses of a host's services, and the fleet's address.

    The function skips a service that other machines reach without a proxy: a rule reports such a
    service, and the user has silenced the rule.
    """
    result = []
    for service in plan.services:
        if service.follower:
            continue  # the engine has no port for clients
        if service.proxy or settings.is_loopback(service.bind):
            https = tls.scheme(plan.settings, proxied=service.proxy) == "https"
            result.append(_entrance(service.name, service.bind, service.port, https=https))
    if address := plan.settings.address:
        https = plan.settings.tls is not None
        name = "the address of all models"
        result.append(_entrance(name, address.bind, address.port, https=https))
    return tuple(result)


def _entrance(name: str, bind: str, port: int, *, https: bool) -> Entrance:
    closed = settings.is_loopback(bind)
    return Entrance(name, bind, None if closed else port, (port,) if closed else (), https)


def look(
    entrances: Sequence[Entrance], address: str | None, ipv4: str | None = None
) -> list[Outside]:
    """Test all addresses within 15 seconds.

    Args:
        address: address at which this machine reaches the host; None if no direct connection
            exists.
        ipv4: the host's IPv4 address if ``address`` is IPv6: services listen there by default.
    """
    if address is None:
        why = "this machine reaches the host through a tunnel or another host"
        return [Outside(entrance.name, None, why) for entrance in entrances]
    until = time.monotonic() + _ALL
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        return [_look(pool, entrance, address, ipv4, until) for entrance in entrances]


def unreachable_ports(host: str, results: Sequence[Outside]) -> Finding | None:
    """Return the finding of a host's ports that did not answer this machine; None if all ports
    answered.
    """
    closed = [result for result in results if result.closed]
    if not closed:
        return None
    ports = sorted({str(result.closed[1]) for result in closed if result.closed})
    notes = "; ".join(f"{result.name}: {result.note}" for result in closed)
    symptom = Symptom("unreachable", host=host, name=host, notes=notes, ports=", ".join(ports))
    return load(Path(__file__).with_name("unreachable.yaml"))["unreachable"].finding(symptom)


def _look(
    pool: Executor, entrance: Entrance, address: str, ipv4: str | None, until: float
) -> Outside:
    began = time.monotonic()
    reached = pool.map(partial(addresses.unreachable, address), entrance.closed)
    problems = [
        f"port {port} accepts connections at {address}, but only the host may reach this port"
        for port, why in zip(entrance.closed, reached, strict=True)
        if why is None
    ]
    if entrance.port is not None:
        at = entrance.bind
        if entrance.bind in settings.EVERY_ADDRESS:
            at = address if entrance.bind == "::" or ":" not in address else ipv4 or address
        if why := addresses.unreachable(at, entrance.port):
            if not problems:
                note = f"{at}:{entrance.port} does not answer this machine: {why}"
                return Outside(entrance.name, None, note, (at, entrance.port))
        else:
            routes = [
                (*route, key)
                for route in inference_routes()
                for key in (None, f"sk-{secrets.token_hex(24)}")
            ]
            opened = partial(_opened, at, entrance.port, until, https=entrance.https)
            problems += filter(None, pool.map(opened, routes))
    detail = ", ".join(problems) or "nothing answers without the key"
    seconds = time.monotonic() - began
    return Outside(entrance.name, CheckResult(CHECK, not problems, seconds, detail))


def _opened(
    address: str, port: int, until: float, route: tuple[str, str, str | None], *, https: bool
) -> str | None:
    """Return the fault in the answer to a request that must be refused; None without a fault.

    The function never waits beyond ``until``, even if the answer arrives slowly.
    """
    method, path, key = route
    how = "with a wrong key" if key else "without the key"
    headers = {"Content-Type": "application/json", "Connection": "close"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    connection = HTTPConnection(address, port)
    try:
        connection.sock = _connected(address, port, until, https=https)
        left = max(0.01, until - time.monotonic())
        connection.sock.settimeout(left)
        connection.response_class = bounded.answers(_HEAD, left)  # type: ignore[assignment]
        connection.request(method, path, "{}" if method == "POST" else "", headers)
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        # An answer that is not HTTP may be any text, including control sequences for a terminal.
        why = error if isinstance(error, OSError) else "no HTTP answer"
        return f"{method} {path} {how}: {why}"
    finally:
        connection.close()
    return None if status in _REFUSALS else f"{method} {path} answers HTTP {status} {how}"


def _connected(address: str, port: int, until: float, *, https: bool) -> socket.socket:
    """Open a connection, over https without verification, since no secret is sent."""
    connection = socket.create_connection((address, port), timeout=_CONNECT)
    if not https:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    result = context.wrap_socket(connection, do_handshake_on_connect=False)
    left = max(0.0, until - time.monotonic())
    end = threading.Timer(left, result.shutdown, (socket.SHUT_RDWR,))
    end.start()
    try:
        result.do_handshake()
    except BaseException:
        result.close()
        raise
    finally:
        end.cancel()
    return result
