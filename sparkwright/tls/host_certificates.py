"""A host's part in TLS: the certificates of its proxies, and their verification."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from sparkwright.config import secrets
from sparkwright.config.inventory import lan_address
from sparkwright.config.settings import HostSettings, TlsSettings, is_loopback
from sparkwright.config.tls import CA
from sparkwright.findings import finding, user_error
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.lib.records import replace
from sparkwright.tls.names import Certificate, Tls, names_of, own_name

_MESSAGES = user_error.Messages(__file__)
#: Certificate and key of a host's proxies, below their home.
CERTIFICATE = "tls/host.pem"


def certificate_place(service_home: str) -> str:
    """Return the path of the proxies' certificate on a service's host."""
    return f"{PurePosixPath(service_home).parents[1]}/gateway/{CERTIFICATE}"


def serves_with(
    host: str,
    data: Mapping[str, Any],
    tls: Tls,
    binds: Iterable[str],
    *,
    dry: bool = False,
) -> secrets.SecretText | None:
    """Return certificate and key of a host, PEM; None if the host serves http.

    Args:
        data: the host's data of inventory and group_data.
        binds: addresses that the host's proxies listen on.
        dry: whether nothing is written: missing parts of the site's own CA are made for this run
            alone.

    Raises:
        UserError: the site's CA can't be used.
    """
    if not isinstance(tls, str):
        return tls.pem if tls else None
    from sparkwright.tls.authority import authority, host_certificate

    now, names = dt.datetime.now(dt.UTC), names_of(host, data, binds)
    return host_certificate(authority(now, names=names, dry=dry), host, names, now, dry=dry)


def identity(host: str, tls: Tls, *, dry: bool = False) -> TlsIdentity | None:
    """Return name and CA that verify a host; None if the host serves http. See ``serves_with``."""
    if not isinstance(tls, str):
        return tls.identity if tls else None
    from sparkwright.tls.authority import authority

    return TlsIdentity(own_name(host), authority(dt.datetime.now(dt.UTC), dry=dry).pem)


def peer_certificate(
    host: str,
    data: Mapping[str, Any],
    tls: Tls,
    proxies: secrets.SecretText | None,
    *,
    dry: bool = False,
) -> Certificate | None:
    """Return a host's certificate for peer sharing; None without TLS.

    Args:
        proxies: certificate of the host's proxies, which covers more addresses; None without
            proxies.

    Raises:
        UserError: the site's CA can't be used.
    """
    result = identity(host, tls, dry=dry)
    pem = proxies or serves_with(host, data, tls, (), dry=dry)
    return Certificate(pem, result) if result and pem else None


def _binds(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses that a host's proxies will listen on, by its data."""
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
        A warning if clients must import the CA again.
    """
    own = [
        names_of(host, data, _binds(data))
        for host, data in everyone.items()
        if data.get("tls") == "own"
    ]
    if not own:
        return
    from sparkwright.tls.authority import authority

    before = CA.read_text(encoding="utf-8") if CA.exists() else None
    if before not in (None, authority(dt.datetime.now(dt.UTC), names=set[str]().union(*own)).pem):
        warning = _MESSAGES.mistake("changed-ca", str(CA))
        yield replace(warning, id="changed-ca", severity=finding.Severity.WARNING)


def address_in_clear(host: str, settings: HostSettings) -> Iterator[finding.Finding]:
    """Yield a warning if other machines reach the address for all models without TLS."""
    address = settings.address
    if address and settings.tls is None and not is_loopback(address.bind):
        warning = _MESSAGES.mistake("address-in-clear", "address", host)
        yield replace(warning, id="address-in-clear", severity=finding.Severity.WARNING)


def clear_services(host: str, services: Iterable[str], file: str) -> Iterator[finding.Finding]:
    """Yield the faults of services without a proxy that other machines reach on a host with TLS."""
    for service in services:
        path = f"{file}: tls: {service} has no proxy"
        yield _MESSAGES.mistake("in-clear", path, host, service=service)


def of_user(
    settings: HostSettings, data: Mapping[str, Any], host: str, file: str
) -> Certificate | None:
    """Return the user's certificate of a host; None without a certificate.

    Args:
        file: file of the setting, for messages.

    Raises:
        UserError: certificate, key or CA can't be used.
    """
    if not isinstance(settings.tls, TlsSettings):
        return None
    # The library is loaded only on use: `sparkwright check` answers in less than a second.
    from sparkwright.tls.users import user_certificate

    address, now = lan_address(host, data), dt.datetime.now(dt.UTC)
    return user_certificate(settings.tls, host, address, f"{file}: tls", now)
