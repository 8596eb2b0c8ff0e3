"""Queries to external servers: hubs, registries and git repositories.

The owner of a repository writes its files, and may write anything: the files are read as data,
within bounds, and never run. Every answer comes through `Server.get`.
"""

from __future__ import annotations

import os
import socket
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sparkwright.documents import json_text
from sparkwright.documents.bounds import MOST, Unusable
from sparkwright.host.lib.records import dataclass
from sparkwright.resolve.messages import MESSAGES

if TYPE_CHECKING:
    import ssl
    import urllib.request
    from email.message import Message

#: Largest size of a genuine small file: a tokenizer_config.json with all added tokens has about 2
#: MiB.
MOST_BYTES = 8 << 20
#: Seconds for all requests to one server, and for one step of a request.
SECONDS, _STEP_SECONDS, _CONNECT_SECONDS = 180.0, 30.0, 5.0
#: Number of addresses of a name to try.
_ADDRESSES = 8
#: Variables that name the certificates of a site's CA, as for the library requests.
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Addresses where clouds answer with a machine's credentials, besides link-local addresses.
_METADATA = ("fd00:ec2::254", "100.100.100.200")


class PrivateAddress(Unusable):
    """A server on the internet redirected to a private network without permission."""


@dataclass(frozen=True)
class Answer:
    """A complete answer; ``content`` is empty for an error."""

    status: int
    headers: Message
    content: bytes

    def required(self) -> Answer:
        """Return this answer. Raises OSError for an HTTP error."""
        if self.status != 200:
            raise OSError(f"HTTP {self.status}")
        return self

    def json(self, most: int = MOST) -> dict[str, Any]:
        """The answer's JSON object. Raises Unusable for any other value."""
        return json_text.load_object(self.content, most)


class Server:
    """A server that the user named, and the servers of its redirects.

    A server must not redirect to a network closer to this machine than its own: not from the
    internet to the LAN, not from the LAN to this machine, and never to link-local addresses, which
    give credentials in clouds. Through a proxy, which resolves names itself, only addresses are
    checked.

    Args:
        private: patterns of names, addresses and networks of private networks to which the server
            may redirect.
    """

    def __init__(self, endpoint: str, private: Sequence[str] = ()) -> None:
        parts = urlsplit(endpoint)
        self._host, self._depth, self._private = parts.hostname, 0, private
        self._schemes = ("https", parts.scheme) if parts.scheme == "http" else ("https",)
        self._until = time.monotonic() + SECONDS

    def get(
        self, url: str, headers: Mapping[str, str] = MappingProxyType({}), most: int = MOST_BYTES
    ) -> Answer:
        """Request a URL, and follow redirects; credentials are sent only to the same scheme,
        host and port.

        Raises:
            Unusable, ValueError: the answer is beyond the bounds or redirects elsewhere.
            OSError: the server is out of reach.
        """
        # A locked run sends no request, and these modules take 0.1 s to import.
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        from sparkwright.host.fetch import sources
        from sparkwright.host.lib import bounded

        if urlsplit(url).scheme not in self._schemes:
            raise Unusable(f"the server refers to {url[:200]}", "name another server")
        opener = sources.opener(
            sources.Redirects(), bounded.answers(most, self._left()), _proxies(),
            connect=self._connected, context=_certificates(*map(os.environ.get, _AUTHORITIES)),
        )  # fmt: skip
        try:
            with opener.open(Request(url, headers=dict(headers)), timeout=_STEP_SECONDS) as answer:
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Unusable("it uses unrequested compression", "use another server")
                content = bounded.read(answer, most)
                if answer.length:
                    raise OSError(f"the answer was cut off, {answer.length} bytes before its end")
                return Answer(answer.status, answer.headers, content)
        except HTTPError as error:
            error.close()
            return Answer(error.code, error.headers, b"")
        except HTTPException as error:
            raise OSError(f"the answer is not HTTP: {error}") from None
        except bounded.TooMuch as error:
            raise Unusable(str(error).replace("the answer", "it"), "use another server") from None

    def _left(self) -> float:
        if (left := self._until - time.monotonic()) <= 0:
            raise TimeoutError("timed out")
        return left

    def _connected(
        self, query: urllib.request.Request, address: tuple[str, int], *_: object
    ) -> socket.socket:
        """A connection to a host, or to the proxy in between."""
        proxied = query.has_proxy() or getattr(query, "_tunnel_host", None)
        if proxied:
            name = urlsplit(query.full_url).hostname or ""
            self._judge(name, name)
        failure: OSError | Unusable = OSError("the name has no address")
        for entry in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[:_ADDRESSES]:
            ip = str(entry[4][0])
            try:
                if not proxied:
                    self._judge(address[0].lower(), ip)
                seconds = min(_CONNECT_SECONDS, self._left())
                connection = socket.create_connection((ip, address[1]), seconds)
                connection.settimeout(_STEP_SECONDS)
                return connection
            except (OSError, Unusable) as error:
                failure = error
        raise failure

    def _judge(self, host: str, ip: str) -> None:
        """Raise Unusable for an address that this server must not lead to."""
        depth = _depth(ip)
        if host == self._host:
            self._depth = max(depth, self._depth)
        elif depth > self._depth:
            if depth == 1 and any(_names(entry, host, ip) for entry in self._private):
                return
            problem = f"the server refers to {host} ({ip}), which is not an internet address"
            raise (PrivateAddress if depth == 1 else Unusable)(problem, "name another server")


def basic(account: str) -> dict[str, str]:
    """Authorization header for an account (``user:password``)."""
    return {"Authorization": f"Basic {b64encode(account.encode()).decode()}"}


def _proxies() -> urllib.request.ProxyHandler:
    """The environment's proxies, chosen for each URL that a query leads to."""
    from urllib.request import ProxyHandler, Request

    from requests.utils import get_environ_proxies, select_proxy

    class Proxies(ProxyHandler):
        def proxy_open(self, req: Request, proxy: str, type: str) -> Any:
            address = select_proxy(req.full_url, get_environ_proxies(req.full_url))
            return super().proxy_open(req, address, type) if address else None

    return Proxies({"http": "chosen", "https": "for each URL"})


def _depth(ip: str) -> int:
    """Return the depth of an address in the network: 0 for the internet, 3 for the local link."""
    try:
        address = _address(ip)
    except ValueError:  # the proxy resolves a name
        return 0
    if address.is_link_local or str(address) in _METADATA:
        return 3
    return 2 if address.is_loopback or address.is_unspecified else int(not address.is_global)


def _address(ip: str) -> IPv4Address | IPv6Address:
    """Parse an address; an IPv4 address mapped into IPv6 becomes IPv4. Raises ValueError for a
    name.
    """
    address = ip_address(ip)
    return getattr(address, "ipv4_mapped", None) or address


def _names(entry: str, host: str, ip: str) -> bool:
    """Return whether an entry of ``private_servers`` names a host, or its address."""
    if fnmatchcase(host, entry.lower()):
        return True
    try:
        return _address(ip) in ip_network(entry, strict=False)
    except ValueError:  # a pattern of names
        return False


@cache  # reading certificates takes 15 ms
def _certificates(*authorities: str | None) -> ssl.SSLContext:
    """TLS context with the authorities of the system and of Mozilla; only with the authorities of
    REQUESTS_CA_BUNDLE if this variable is set.
    """
    import ssl

    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not any(authorities):
        context.load_default_certs()
    file = next(filter(None, authorities), certifi.where())
    context.load_verify_locations(**{"capath" if Path(file).is_dir() else "cafile": file})
    return context


@contextmanager
def asking(subject: str, server: str, *, answer: str, setting: str) -> Iterator[None]:
    """Combine a query's errors into one finding.

    Args:
        answer: expected answer of the server, as text.
        setting: setting that names another server.

    Raises:
        UserError: the server can't be reached, or returns another type of answer.
    """
    facts = {"server": server, "setting": setting}
    try:
        yield
    except OSError as error:
        cause = getattr(error, "reason", error)  # urllib's error contains the system's error
        reason = (getattr(cause, "strerror", None) or str(cause))[:200]
        raise MESSAGES.refusal("unreachable", subject, **facts, reason=reason) from error
    except Unusable as error:
        facts |= {"answer": f"{answer} ({error.fault})"}
        message = "private" if isinstance(error, PrivateAddress) else "another"
        raise MESSAGES.refusal(f"{message}-answer", subject, **facts) from error
    # Any exception that a parser raises for invalid data.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise MESSAGES.refusal("another-answer", subject, **facts, answer=answer) from error
