"""A host's own addresses, and the reachable addresses of other hosts."""

import errno
import ipaddress
import re
import socket
import threading

from sparkwright.host.lib import documents, records
from sparkwright.host.lib.processes import Running


@records.dataclass(frozen=True)
class Reach:
    """Another host with names and addresses to try, the best first.

    Attributes:
        port: port to try; a refused connection also shows that the host is reachable.
    """

    name: str
    addresses: tuple[str, ...]
    port: int


@records.dataclass(frozen=True)
class Reached:
    """Result of the attempt to reach another host.

    Attributes:
        address: IP address; None if the host was not reached.
        written: the requested name or address that led to ``address``.
        dns: whether ``written`` is a name that DNS resolves.
        tried: failed names and addresses, each with the reason.
    """

    address: str | None = None
    written: str | None = None
    dns: bool = False
    tried: tuple[str, ...] = ()


#: Seconds for one address, and for all addresses with their name resolution.
_CONNECT, _ALL = 2.0, 8.0
_REFUSED = "no program listens on the port yet"


class Question:
    """Query of this host's addresses, which runs in parallel with other queries."""

    def __init__(self) -> None:
        self._listed = Running("ip", "-o", "addr", "show", "scope", "global")

    def answer(self) -> dict[str, tuple[str, ...]]:
        """Return the addresses by interface, IPv4 first, without temporary privacy addresses."""
        interfaces: dict[str, tuple[str, ...]] = {}
        for line in self._listed.outcome().out.splitlines():
            # 2: eth0    inet6 fd00::11/64 scope global temporary dynamic
            match = re.match(r"\d+: (\S+) +inet6? ([0-9a-f.:]+)", line)
            if match and not re.search(r" (temporary|deprecated|tentative|dadfailed)\b", line):
                interfaces[match[1]] = (*interfaces.get(match[1], ()), match[2])
        return interfaces


def usable(address: str) -> bool:
    """Return whether an address means the same host everywhere, unlike fe80::1%eth0 and
    127.0.1.1.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (
        parsed.is_link_local or parsed.is_loopback or parsed.is_multicast or parsed.is_unspecified
    )


def reached(wanted: tuple[Reach, ...]) -> dict[str, Reached]:
    """Find an address at which each host answers this host; all hosts are tried at once."""
    results = {host.name: Reached(tried=("its name was not resolved in time",))
             for host in wanted}  # fmt: skip

    def look(host: Reach) -> None:
        results[host.name] = _reached(host)

    threads = [threading.Thread(target=look, args=(host,), daemon=True) for host in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_ALL)
    return dict(results)


def _reached(host: Reach) -> Reached:
    """Return an address that answers; otherwise an address that refuses the connection."""
    tried: list[str] = []
    silent: list[tuple[str, str]] = []
    for written in host.addresses:
        try:
            infos = socket.getaddrinfo(written, host.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            tried.append(f"{written}: {error}")
            continue
        # Sort IPv4 first and always in the same order: the written file must not change needlessly.
        numbers = {str(info[4][0]): info[0] for info in infos if usable(str(info[4][0]))}
        if not numbers:
            tried.append(f"{written} has no address that other hosts can use")
        for address in sorted(numbers, key=lambda at: (":" in at, at)):
            if (why := unreachable(address, host.port)) is None:
                return Reached(address, written, _by_dns(written), tuple(tried))
            if why == _REFUSED:
                silent.append((address, written))
            tried.append(f"{address}: {why}")
    if not silent:
        return Reached(tried=tuple(tried))
    # Sort IPv4 first: services listen on IPv4 by default.
    address, written = sorted(silent, key=lambda result: ":" in result[0])[0]
    return Reached(address, written, _by_dns(written), tuple(tried))


def unreachable(address: str, port: int) -> str | None:
    """Return why a connection fails; None if it succeeds."""
    try:
        socket.create_connection((address, port), timeout=_CONNECT).close()
    except OSError as error:
        return _REFUSED if error.errno == errno.ECONNREFUSED else str(error)
    return None


def _by_dns(name: str) -> bool:
    """Return whether DNS resolves a name, so that HAProxy's own resolver finds the name."""
    if "." not in name or name.endswith(".local") or usable(name):
        return False
    hosts = documents.text("/etc/hosts") or ""
    return name not in {
        word for line in hosts.splitlines() for word in line.partition("#")[0].split()
    }
