"""TLS files on the controller, and the scheme of clients."""

from pathlib import Path

from sparkwright.config.settings import HostSettings

#: Folder of the site's own CA and its key; only the owner may enter.
CA_DIRECTORY = Path(".sparkwright/ca")
#: The CA's certificate, for clients.
CA = CA_DIRECTORY / "ca.crt"


def scheme(settings: HostSettings, *, proxied: bool) -> str:
    """Return the URL scheme of a service for its clients; an engine without a proxy serves plain
    HTTP.
    """
    return "https" if settings.tls and proxied else "http"


def clients_ca(settings: HostSettings) -> str | None:
    """Return the CA's file on the controller with which clients verify a host; None for public CAs,
    and without TLS.
    """
    if settings.tls is None:
        return None
    return str(CA) if settings.tls == "own" else settings.tls.ca
