"""The peer server's units: a socket that holds the port, and a service that sees nothing else."""

from __future__ import annotations

from ipaddress import ip_address

from sparkwright.host.lib import sandbox

#: Below the services' root: an empty directory, the root of all that the server sees.
ROOT = "state/peers/root"

_SOCKET = """\
[Unit]
Description=sparkwright: the port on which hosts serve each other
# The port is open while the server runs, and no longer. After a crash it is free for the second
# until the next start: who takes it then knows no key, and gets and gives nothing.
BindsTo={unit}.service

[Socket]
{listen}
# An address that comes later, or never, must not keep this host's own Docker waiting.
FreeBind=yes
NoDelay=yes
Backlog=256
"""

#: What it has otherwise than the other units.
_OTHERWISE = (
    "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
    # The listening sockets are systemd's: the server itself reaches no network.
    "PrivateNetwork=yes",
    "RestrictAddressFamilies=AF_UNIX",
    # Whether a fetch runs is read from its process, as any user may.
    "ProtectProc=default",
    "ProcSubset=all",
    "MemoryMax=512M",
    "TasksMax=320",
)

_SERVICE = """\
[Unit]
Description=sparkwright: serve models and images to other hosts
Requires={unit}.socket

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=1

# A user that owns nothing and exists while the server runs. Weights, parts and keys are root's, and
# parts are readable by root alone: the one capability lets it read them. Of the file system it sees
# programs, models, images' parts and its keys, all read-only; open_by_handle_at, which could reach
# beyond that with this capability, is no call that it may make.
DynamicUser=yes
User=sparkwright-share
AmbientCapabilities=CAP_DAC_READ_SEARCH
RootDirectory={root}
MountAPIVFS=yes
BindReadOnlyPaths=/usr -/lib -/lib64 -/bin -/etc/ld.so.cache -/etc/alternatives
BindReadOnlyPaths={places}
InaccessiblePaths=-+/usr/local -+/usr/share -+/usr/src
{sandbox}
PrivateIPC=yes
RemoveIPC=yes
UMask=0077
MemorySwapMax=0
LimitNOFILE=1024
# A box that is already serving must not suffer from what others take.
{modest}
"""


def socket_text(unit: str, port: int, addresses: tuple[str, ...]) -> str:
    """The socket's unit file: the port on loopback and on some addresses of the host."""
    listen = dict.fromkeys(("127.0.0.1", *addresses))
    lines = (f"ListenStream={at(address, port)}" for address in listen)
    return _SOCKET.format(unit=unit, listen="\n".join(lines))


def service_text(
    unit: str, command: tuple[str, ...], root: str, places: tuple[str, ...], modest: tuple[str, ...]
) -> str:
    """The service's unit file.

    Args:
        root: an empty directory.
        places: what the server sees of the file system, besides programs.
        modest: properties of how little it may take from others.
    """
    return _SERVICE.format(
        unit=unit,
        command=" ".join(command),
        root=root,
        places=" ".join(places),
        sandbox=sandbox.lines(*_OTHERWISE),
        modest="\n".join(modest),
    )


def at(address: str, port: int) -> str:
    """An address with a port, as in a URL and in ListenStream=."""
    return f"[{address}]:{port}" if ip_address(address).version == 6 else f"{address}:{port}"
