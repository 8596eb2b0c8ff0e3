"""Registries of recipes: git repositories of third parties."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from sparkwright.config.inventory import HostInput

#: Name of a registry on the command line, after an ``@``.
RegistryName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]


def registry_address(address: str) -> str:
    """Validate an address for git.

    Raises:
        ValueError: the address is not https or a local path, or git would read it as an option.
    """
    if not address.isprintable() or any(item.isspace() for item in address):
        raise ValueError("an address must not contain spaces or control characters")
    if is_local(address):
        return address
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname or not parts.path.strip("/"):
        reason = "this is not an address of a registry"
        raise ValueError(f"{reason}; write https://HOST/REPOSITORY, or a path on this machine")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("an address must not have an account, a query or a fragment")
    return address


def is_local(address: str) -> bool:
    """Return whether an address has the form of a path on this machine."""
    return address.startswith(("/", "./", "../", "~/"))


RegistryAddress = Annotated[str, AfterValidator(registry_address)]


def named_registries(hosts: Iterable[HostInput]) -> dict[str, str]:
    """Return every registry in the hosts' settings, which are not validated here."""
    result: dict[str, str] = {}
    for host in hosts:
        data: Any = host.data.get("registries")
        if isinstance(data, Mapping):
            result |= {str(name): str(address) for name, address in data.items()}
    return result


def local_path(address: str) -> Path:
    """Return the folder of a local address."""
    return Path(address).expanduser().resolve()
