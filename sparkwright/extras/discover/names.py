"""Boxes of the LAN, named by mDNS and by the user's ssh_config and known_hosts.

Of files only what they say of this LAN is taken: nobody else's server is logged in to for a look.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from sparkwright.bootstrap.gpu_question import Box, boxes
from sparkwright.findings.user_error import UserError, mistake

#: As `init --host` takes them. Nothing that ssh would read as an option.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_SERVICE = "_ssh._tcp.local."
#: Seconds that answers of mDNS are waited for.
_WAITING = 3.0
_FILE = 1 << 20
#: Of one LAN; more are somebody's joke.
MOST = 256
Resolve = Callable[[str], list[str]]


@dataclass(frozen=True)
class Candidate:
    """A box that may be one to serve on.

    Attributes:
        name: as SSH knows it.
        addresses: private ones; a box under two names has the same.
        source: where its name comes from.
    """

    name: str
    addresses: tuple[str, ...]
    source: str


def discovered(*, mdns: bool) -> list[Box]:
    """Every box that is found, with its GPU.

    Args:
        mdns: whether the LAN is asked.
    """
    named = candidates(Path.home(), _WAITING, resolved, mdns)
    return boxes({candidate.name: candidate.source for candidate in named})


def candidates(home: Path, seconds: float, resolve: Resolve, browse: bool) -> list[Candidate]:
    """Every box once, under the name that the user gave it before the one it gives itself.

    Args:
        home: the user's directory.
        seconds: that answers of mDNS are waited for.
        browse: whether mDNS is asked.
    """
    found = list(_resolved(ssh_config(home / ".ssh/config"), "ssh_config", resolve))
    found += _resolved(known_hosts(home / ".ssh/known_hosts"), "known_hosts", resolve)
    found += announced(seconds) if browse else []
    return once(found)[:MOST]


def once(found: Iterable[Candidate]) -> list[Candidate]:
    """Each box once: none twice by name or by address."""
    chosen: list[Candidate] = []
    names: set[str] = set()
    addresses: set[str] = set()
    for one in found:
        if one.name.lower() not in names and not addresses & set(one.addresses):
            chosen.append(one)
        names.add(one.name.lower())
        addresses |= set(one.addresses)
    return chosen


def ssh_config(place: Path) -> dict[str, str]:
    """Names of ``Host`` lines -> where they lead; without patterns, and without included files."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _lines(place):
        key, _, value = line.replace("=", " ", 1).partition(" ")
        if key.lower() in ("host", "match"):
            words = value.split() if key.lower() == "host" else []
            names = [one for one in words if NAME.fullmatch(one)]
            found |= {one: one for one in names if one not in found}
        elif key.lower() == "hostname":
            found |= dict.fromkeys(names, value.strip().strip('"'))
    return found


def known_hosts(place: Path) -> dict[str, str]:
    """Names of hosts that the user has logged in to; hashed ones can't be read."""
    found: dict[str, str] = {}
    for line in _lines(place):
        words = line.split()
        if len(words) > 2 and not words[0].startswith(("|", "@")):
            for name in words[0].split(","):
                if NAME.fullmatch(name):
                    found[name] = name
    return found


def announced(seconds: float) -> list[Candidate]:
    """Who announces SSH in the LAN by mDNS, as avahi and macOS do.

    Raises:
        UserError: when the library is not installed.
    """
    try:
        import zeroconf
    except ImportError:
        what = "mDNS needs the library zeroconf, which is not installed"
        remedy = "pip install 'sparkwright[discover]', or --no-mdns for ssh_config and known_hosts"
        raise UserError([mistake("command line", what, remedy)]) from None
    names: set[str] = set()

    class Listener(zeroconf.ServiceListener):  # type: ignore[misc, unused-ignore]
        def add_service(self, zc: Any, type_: str, name: str) -> None:
            names.add(name)

        def update_service(self, zc: Any, type_: str, name: str) -> None:
            names.add(name)

        def remove_service(self, zc: Any, type_: str, name: str) -> None:
            names.discard(name)

    network = zeroconf.Zeroconf()
    try:
        zeroconf.ServiceBrowser(network, _SERVICE, Listener())
        time.sleep(seconds)
        infos = [network.get_service_info(_SERVICE, name) for name in sorted(names)[:MOST]]
    finally:
        network.close()
    return [one for info in infos if info for one in _candidate(info)]


def _candidate(info: Any) -> Iterator[Candidate]:
    name = str(info.server or "").rstrip(".")
    addresses = _private(info.parsed_addresses())
    if NAME.fullmatch(name) and addresses:
        yield Candidate(name, addresses, "mDNS")


def _resolved(found: dict[str, str], source: str, resolve: Resolve) -> Iterator[Candidate]:
    for name, target in found.items():
        if NAME.fullmatch(target) and (addresses := _private(resolve(target))):
            yield Candidate(name, addresses, source)


def resolved(name: str) -> list[str]:
    """A name's addresses; none when nobody knows it."""
    try:
        return [str(one[4][0]) for one in socket.getaddrinfo(name, 22, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _private(addresses: Iterable[str]) -> tuple[str, ...]:
    """Those of this LAN: private, and not this machine's own."""
    found = []
    for one in addresses:
        try:
            address = ip_address(one.partition("%")[0])
        except ValueError:
            continue
        if address.is_private and not address.is_loopback and not address.is_unspecified:
            found.append(str(address))
    return tuple(dict.fromkeys(found))


def _lines(place: Path) -> Iterator[str]:
    try:
        with place.open("rb") as file:
            text = file.read(_FILE).decode(errors="replace")
    except OSError:
        return
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            yield line
