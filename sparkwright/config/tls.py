"""TLS files on the controller, and the scheme of clients."""

from pathlib import Path
from typing import Literal

from sparkwright.config.secrets import SecretText
from sparkwright.config.settings import HostSettings
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.lib.records import dataclass

#: The site's own CA, its key with it; only the owner may enter.
CA_DIRECTORY = Path(".sparkwright/ca")
#: The CA's certificate, for clients.
CA = CA_DIRECTORY / "ca.crt"


@dataclass(frozen=True)
class Certificate:
    """Certificate of a host with its key, PEM, and the identity that others verify."""

    pem: SecretText
    identity: TlsIdentity


#: Decided TLS of a host: a certificate of the site's own CA, or of the user's; None for http.
Tls = Literal["own"] | Certificate | None


def scheme(settings: HostSettings, *, proxied: bool) -> str:
    """Clients' way to a service: vLLM itself serves in clear."""
    return "https" if settings.tls and proxied else "http"


def clients_ca(settings: HostSettings) -> str | None:
    """The file on the controller with which clients verify a host; None for public CAs, and without
    TLS.
    """
    if settings.tls is None:
        return None
    return str(CA) if settings.tls == "own" else settings.tls.ca
