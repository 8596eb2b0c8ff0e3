"""The proxy through which a host reaches the internet, as environment variables of its programs.

systemd's units get no variables from /etc/environment or a login.
"""

from urllib.parse import urlsplit

from sparkwright.config.settings import HostSettings
from sparkwright.tls.names import ip_address

_ALWAYS = ("localhost", "127.0.0.1", "::1", ".local", ".lan", ".internal", ".home.arpa")


def environment(settings: HostSettings) -> dict[str, str]:
    """Variables for programs that fetch; empty without a proxy.

    Both spellings are set: apt reads only the lower case.
    """
    if settings.http_proxy is None:
        return {}
    packages = (source.uri for source in settings.bootstrap_sources.values() if source.uri)
    places = (settings.hub_endpoint, *settings.image_mirrors.values(), *packages)
    named = (urlsplit(item).hostname or "" for item in places)
    direct = ",".join(dict.fromkeys((*_ALWAYS, *filter(_in_lan, named), *settings.no_proxy)))
    result = {"HTTP_PROXY": settings.http_proxy, "HTTPS_PROXY": settings.http_proxy}
    result["NO_PROXY"] = direct
    return result | {name.lower(): value for name, value in result.items()}


def _in_lan(name: str) -> bool:
    """Return whether a name or address belongs to the LAN."""
    address = ip_address(name)
    return address.is_private if address else "." not in name
