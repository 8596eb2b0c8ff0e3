"""A host's part in TLS: the certificates of its proxies, and their verification."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from sparkwright.config import secrets, tls
from sparkwright.config.inventory import lan_address
from sparkwright.config.settings import HostSettings, TlsSettings, is_loopback
from sparkwright.findings import finding, user_error
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.tls.names import is_name, names_of, own_name

_MESSAGES = user_error.Messages(__file__)
if TYPE_CHECKING:
    from sparkwright.tls.users import UserCertificate

#: The setting ``tls``.
Tls = Literal["own"] | TlsSettings | None


#: Certificate and key of a host's proxies, below their home.
CERTIFICATE = "tls/host.pem"


def certificate_place(service_home: str) -> str:
    """Path of the proxies' certificate on a service's host."""
    return f"{PurePosixPath(service_home).parents[1]}/gateway/{CERTIFICATE}"


def serves_with(
    host: str,
    data: Mapping[str, Any],
    settings: Tls,
    binds: Iterable[str],
    where: str = "tls",
    *,
    dry: bool = False,
) -> secrets.SecretText | None:
    """Certificate and key of a host, PEM; None if it serves http.

    Args:
        data: the host's data of inventory and group_data.
        binds: addresses that its proxies listen on.
        where: file and key of the setting, for messages.
        dry: whether nothing is written: missing parts of the site's own CA are made for this run
            alone.

    Raises:
        UserError: certificate, key or CA can't be used.
    """
    if settings is None:
        return None
    if isinstance(settings, TlsSettings):
        return _users(host, data, settings, where).pem
    from sparkwright.tls.authority import authority, host_certificate

    now, names = dt.datetime.now(dt.UTC), names_of(host, data, binds)
    return host_certificate(authority(now, names=names, dry=dry), host, names, now, dry=dry)


def identity(
    host: str, data: Mapping[str, Any], settings: Tls, where: str = "tls", *, dry: bool = False
) -> TlsIdentity | None:
    """Verification of a host by others; None if it serves http. See ``serves_with``."""
    if settings is None:
        return None
    if isinstance(settings, TlsSettings):
        given = _users(host, data, settings, where)
        named = [lan_address(host, data), *(name for name in given.names if "*" not in name)]
        return TlsIdentity(next((item for item in named if is_name(item)), None), given.ca)
    from sparkwright.tls.authority import authority

    return TlsIdentity(own_name(host), authority(dt.datetime.now(dt.UTC), dry=dry).pem)


@dataclass(frozen=True)
class PeerCertificate:
    """Certificate that a host serves other hosts with, and the identity that they verify."""

    pem: secrets.SecretText
    identity: TlsIdentity


def peer_certificate(
    host: str,
    data: Mapping[str, Any],
    settings: Tls,
    proxies: secrets.SecretText | None,
    *,
    dry: bool = False,
) -> PeerCertificate | None:
    """A host's part in peer sharing; None without TLS.

    Args:
        proxies: certificate of its proxies, which covers more addresses; None without one.

    Raises:
        UserError: certificate, key or CA can't be used.
    """
    result = identity(host, data, settings, dry=dry)
    pem = proxies or serves_with(host, data, settings, (), dry=dry)
    return PeerCertificate(pem, result) if result and pem else None


def _binds(data: Mapping[str, Any]) -> Iterator[str]:
    """Addresses that a host's proxies will listen on, by its data."""
    services = data.get("services")
    entries = [*services.values()] if isinstance(services, dict) else []
    for entry in (*entries, data.get("address")):
        bind = entry.get("bind") if isinstance(entry, dict) else None
        if isinstance(bind, str):
            yield bind


def prepare_ca(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[finding.Finding]:
    """Make the site's CA permit the names of all hosts of the inventory, before the first host gets
    its certificate: afterwards the CA stays unchanged.

    Returns:
        A warning if clients must import it again.
    """
    own = [
        names_of(host, data, _binds(data))
        for host, data in everyone.items()
        if data.get("tls") == "own"
    ]
    if not own:
        return
    from sparkwright.tls.authority import authority

    before = tls.CA.read_text(encoding="utf-8") if tls.CA.exists() else None
    if before not in (None, authority(dt.datetime.now(dt.UTC), names=set[str]().union(*own)).pem):
        warning = _MESSAGES.mistake("changed-ca", str(tls.CA))
        yield replace(warning, id="changed-ca", severity=finding.Severity.WARNING)


def address_in_clear(host: str, settings: HostSettings) -> Iterator[finding.Finding]:
    """A warning for an address for all models that others reach without TLS."""
    address = settings.address
    if address and settings.tls is None and not is_loopback(address.bind):
        warning = _MESSAGES.mistake("address-in-clear", "address", host)
        yield replace(warning, id="address-in-clear", severity=finding.Severity.WARNING)


def problems(
    host: str, data: Mapping[str, Any], settings: Tls, in_clear: Iterable[str], where: str
) -> Iterator[finding.Finding]:
    """Faults in a host's TLS, found before any part of it is made.

    Args:
        in_clear: its services that others reach without a proxy.
    """
    if settings is None:
        return
    for service in in_clear:
        path = f"{where}: {service} has no proxy"
        yield _MESSAGES.mistake("in-clear", path, host, service=service)
    if isinstance(settings, TlsSettings):
        try:
            _users(host, data, settings, where)
        except user_error.UserError as error:
            yield from error.findings


def _users(
    host: str, data: Mapping[str, Any], settings: TlsSettings, where: str
) -> UserCertificate:
    # The library is loaded only on use: `sparkwright check` answers in less than a second.
    from sparkwright.tls.users import user_certificate

    return user_certificate(settings, host, lan_address(host, data), where, dt.datetime.now(dt.UTC))
