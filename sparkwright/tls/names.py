"""A host's certificate, and the names and addresses in certificates."""

import hashlib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from sparkwright.config import inventory, secrets, settings
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.lib.records import dataclass

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
#: Every host has a name below this domain, independent of its name in the inventory. DNS does not
#: resolve these names.
_OWN = "sparkwright.internal"


@dataclass(frozen=True)
class Certificate:
    """Certificate of a host with its key, PEM, and the identity that other programs verify."""

    pem: secrets.SecretText
    identity: TlsIdentity


#: TLS of a host: a certificate of the site's own CA, or a certificate of the user; None for http.
Tls = Literal["own"] | Certificate | None


def ip_address(text: str) -> IpAddress | None:
    """Parse an IP address; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_name(text: str) -> bool:
    """Return whether a certificate can have the text as a host's name."""
    return bool(_NAME.fullmatch(text.lower())) and ip_address(text) is None and len(text) < 254


def label(host: str) -> str:
    """Return a host's inventory name, which may be an address or a connector's name, as one label
    of a host name; no two hosts share a label.
    """
    text = re.sub(r"[^a-z0-9-]+", "-", host.lower()).strip("-")[:50]
    if text == host:
        return text
    return f"{text}-{hashlib.sha256(host.encode()).hexdigest()[:8]}".lstrip("-")


def own_name(host: str) -> str:
    """Return the name by which other hosts verify a host."""
    return f"{label(host)}.{_OWN}"


def names_of(host: str, data: Mapping[str, Any], binds: Iterable[str] = ()) -> tuple[str, ...]:
    """Return all names and addresses of a host, names in lower case, sorted.

    Args:
        data: the host's data of inventory and group_data.
        binds: addresses that the host's proxies listen on.
    """
    named = [host, inventory.ssh_address(host, data), inventory.lan_address(host, data)]
    named += [bind for bind in binds if bind not in settings.EVERY_ADDRESS]
    result = {item.lower() for item in named if is_name(item) or ip_address(item)}
    # Add the names that Avahi announces in a LAN.
    result |= {f"{item}.local" for item in result if is_name(item) and "." not in item}
    return tuple(sorted({*result, own_name(host), "localhost", "127.0.0.1", "::1"}))


def covers(names: Iterable[str], address: str) -> bool:
    """Return whether a certificate for these names covers an address; ``*.`` stands for one
    label.
    """
    wanted = address.lower()
    if (ip := ip_address(wanted)) is not None:
        return any(ip_address(name) == ip for name in names)
    _, _, rest = wanted.partition(".")
    return any(name.lower() in (wanted, f"*.{rest}" if rest else wanted) for name in names)
