"""Types of values in settings: numbers within bounds, names, paths, addresses."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from sparkwright.catalog.data import Straight

#: A service's name becomes a systemd unit, a Compose project and a directory.
ServiceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
#: Strict integer, since pyinfra, HAProxy and systemd do not accept "22" or True as a number.
Whole = Annotated[int, Field(strict=True)]
#: A TCP port.
Port = Annotated[Whole, Field(ge=1, le=65535)]
#: Waiting time in seconds, a day at most.
Seconds = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
WholeSeconds = Annotated[Whole, Field(gt=0, le=86400)]
#: GiB of memory or disk.
Gib = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
#: Directories of a system's own files, and directories that its programs share.
_SYSTEM = re.compile(
    r"/+((bin|boot|dev|etc|lib(32|64|x32|exec)?|proc|run(?!/media/)|sbin|sys)(/.*)?|(home|opt|root|tmp|usr|var|var/lib)?/*)"
)
#: A GPU's UUID, or its index.
GpuName = (
    Annotated[Whole, Field(ge=0, le=999)] | Annotated[str, Field(pattern=r"^GPU-[0-9a-fA-F-]{36}$")]
)
AbsolutePath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$", max_length=1024), Straight]


def _no_system_directory(path: str) -> str:
    if _SYSTEM.fullmatch(path):
        raise ValueError("this is a system directory; name another directory, such as /opt/models")
    return path


#: A directory of a host that belongs to sparkwright, with its owner and mode.
OwnDirectory = Annotated[AbsolutePath, AfterValidator(_no_system_directory)]
AbsolutePattern = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/*?-]+$", max_length=1024), Straight]
#: Reason for an exception to a rule.
Reason = Annotated[str, Field(min_length=8, max_length=2000)]
#: Address of an HTTP proxy, without an account, since the environment of units is world-readable.
ProxyAddress = Annotated[str, Field(pattern=r"^http://[A-Za-z0-9._\[\]:-]+$")]
HttpAddress = Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]


def _usable_address(address: str) -> str:
    if ":" in address or re.fullmatch(r"[0-9.]+", address):
        ip_address(address)  # only IP addresses have colons, or digits alone
    return address


#: An address to bind or to connect to.
Address = Annotated[
    str,
    Field(pattern=r"^(\*|[A-Za-z0-9_:][A-Za-z0-9._:%-]*)$", max_length=253),
    AfterValidator(_usable_address),
]
#: Host's name as in URLs, without a port; engines compare the whole name, in lower case.
HostName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)]
_Word = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping of settings that has not been validated yet; an empty mapping for any other
    value.
    """
    return value if isinstance(value, Mapping) else {}


def _no_directory(path: str) -> str:
    if Path(path).expanduser().is_dir():
        raise ValueError("this is a directory, but the setting needs a file")
    return path


#: A file on the controller: existing, or made by sparkwright.
ControllerFile = Annotated[_Word, AfterValidator(_no_directory)]
ControllerPath = _Word
