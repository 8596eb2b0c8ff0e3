"""Boxes of the LAN, named by mDNS and by the user's ssh_config and known_hosts.

Of files only what they say of this LAN is taken: nobody else's server is logged in to for a look.
"""

import re
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from sparkwright.bootstrap.gpu_question import Box, boxes
from sparkwright.findings.user_error import refusal

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
    named = candidates(Path.home(), resolved, announced(_WAITING) if mdns else [])
    return boxes({candidate.name: candidate.source for candidate in named})


def candidates(home: Path, resolve: Resolve, others: Iterable[Candidate]) -> list[Candidate]:
    """Every box once, by name and by address, under the name that the user gave it before the name
    that it gives itself.

    Args:
        home: the user's directory.
        others: boxes that announce themselves.
    """
    files = (("ssh_config", ssh_config(home / ".ssh/config")),
             ("known_hosts", known_hosts(home / ".ssh/known_hosts")))  # fmt: skip
    named = (
        Candidate(name, addresses, source)
        for source, targets in files
        for name, target in targets.items()
        if NAME.fullmatch(target) and (addresses := _private(resolve(target)))
    )
    chosen: list[Candidate] = []
    met: set[str] = set()
    for candidate in (*named, *others):
        same = {candidate.name.lower(), *candidate.addresses}
        if not same & met:
            chosen.append(candidate)
        met |= same
    return chosen[:MOST]


def ssh_config(path: Path) -> dict[str, str]:
    """Names of ``Host`` lines -> where they lead; without patterns, and without included files."""
    targets: dict[str, str] = {}
    names: list[str] = []
    for line in _lines(path):
        key, _, value = line.replace("=", " ", 1).partition(" ")
        if key.lower() in ("host", "match"):
            arguments = value.split() if key.lower() == "host" else []
            names = [word for word in arguments if NAME.fullmatch(word)]
            for name in names:
                targets.setdefault(name, name)
        elif key.lower() == "hostname":
            targets |= dict.fromkeys(names, value.strip().strip('"'))
    return targets


def known_hosts(path: Path) -> dict[str, str]:
    """Names of hosts that the user has logged in to; hashed names can't be read."""
    names = (
        name
        for arguments in map(str.split, _lines(path))
        if len(arguments) > 2 and not arguments[0].startswith(("|", "@"))
        for name in arguments[0].split(",")
    )
    return {name: name for name in names if NAME.fullmatch(name)}


def announced(seconds: float) -> list[Candidate]:
    """Boxes that announce SSH in the LAN by mDNS, as avahi and macOS do.

    Args:
        seconds: that answers are waited for.

    Raises:
        UserError: when the library is not installed.
    """
    try:
        import zeroconf
    except ImportError:
        problem = "mDNS needs the library zeroconf, which is not installed"
        remedy = "pip install 'sparkwright[discover]', or --no-mdns for ssh_config and known_hosts"
        raise refusal("command line", problem, remedy) from None
    names: set[str] = set()

    def changed(*, name: str, **_: Any) -> None:
        names.add(name)

    network = zeroconf.Zeroconf()
    try:
        zeroconf.ServiceBrowser(network, _SERVICE, handlers=[changed])
        time.sleep(seconds)
        infos = [network.get_service_info(_SERVICE, name) for name in sorted(names)[:MOST]]
    finally:
        network.close()
    # Without an answer, a name was taken back.
    named = ((str(info.server or "").rstrip("."), info) for info in infos if info)
    return [
        Candidate(name, addresses, "mDNS")
        for name, info in named
        if NAME.fullmatch(name) and (addresses := _private(info.parsed_addresses()))
    ]


def resolved(name: str) -> list[str]:
    """A name's addresses; none when nobody knows it."""
    try:
        return [str(info[4][0]) for info in socket.getaddrinfo(name, 22, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _private(texts: Iterable[str]) -> tuple[str, ...]:
    """Addresses of this LAN: private, and not this machine's own."""
    private: dict[str, None] = {}
    for text in texts:
        with suppress(ValueError):
            address = ip_address(text.partition("%")[0])
            if address.is_private and not address.is_loopback and not address.is_unspecified:
                private[str(address)] = None
    return tuple(private)


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE).decode(errors="replace")
    except OSError:
        return []
    lines = map(str.strip, text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
