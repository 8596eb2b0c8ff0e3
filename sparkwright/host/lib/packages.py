"""Packages of the distribution: installed and installable versions."""

import re
import shutil
import threading

from sparkwright.host.lib.addresses import unreachable
from sparkwright.host.lib.processes import Running, run
from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class Package:
    """A package of the distribution.

    Attributes:
        version: installed version; None if the package is missing.
        candidate: version that apt-get would install for a missing package, if any.
        unreachable: why apt-get can't download a missing package; None if it can.
    """

    version: str | None = None
    candidate: str | None = None
    unreachable: str | None = None


#: Seconds for all package servers, including name resolution.
_ALL = 6.0
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")


class Question:
    """Query of a package's version: ``NAME -v``, which runs in parallel with other queries.

    Args:
        proxy: proxy for the download if apt itself has none configured.
    """

    def __init__(self, name: str, proxy: str = "") -> None:
        self._name = name
        self._proxy = proxy
        self._version = Running(f"/usr/sbin/{name}", "-v")

    def answer(self) -> Package:
        """Return the package's installed version, or, for a missing package, the installable
        version.
        """
        if version := _VERSION.search(self._version.outcome().out):
            return Package(version[0])
        if shutil.which("apt-get") is None:
            return Package(unreachable="the host has no apt-get")
        policy = run("apt-cache", "policy", self._name, timeout=10).out
        candidate = re.search(r"Candidate: (\d\S*)", policy)
        return Package(None, candidate[1] if candidate else None, _unreachable(self._proxy))


def _unreachable(given: str) -> str | None:
    """Return why no server of apt-get accepts a connection; None if a server does."""
    listed = run("apt-get", "update", "--print-uris", timeout=10).out
    proxy = run("apt-config", "dump", "--format", "%v%n", "Acquire::http::Proxy", timeout=10).out
    servers = _servers(given) or _servers(proxy) or _servers(listed)
    if not servers:
        return None if "'" in listed else "apt-get has no package server configured"
    reached: list[str] = []
    # A dead resolver takes longer than a user would wait.
    look = threading.Thread(target=_connect, args=(servers, reached), daemon=True)
    look.start()
    look.join(_ALL)
    return None if reached else f"{', '.join(name for name, _ in servers)} can't be reached"


def _servers(text: str) -> list[tuple[str, int]]:
    """Return the names and ports of the http(s) addresses in a text, without duplicates."""
    addresses = re.findall(r"\b(https?)://(?:[^/@'\s]*@)?([A-Za-z0-9.-]+)(?::(\d+))?", text)
    ports = {"http": 80, "https": 443}
    return list(dict.fromkeys((name, int(port or ports[how])) for how, name, port in addresses))


def _connect(servers: list[tuple[str, int]], reached: list[str]) -> None:
    for name, port in servers:
        if unreachable(name, port) is None:
            reached.append(name)
            return
