"""Sandbox of sparkwright's units, with only the permissions that they need (systemd.exec(5)).

All services and jobs share one set of properties; a unit names its exceptions and their reasons.
The units run as root, because root owns Docker's socket and the files with keys, but without
capabilities.
"""

from collections.abc import Iterable

SET = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateMounts=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "ProcSubset=pid",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",
    "KeyringMode=private",
    "MemoryMax=256M",
    "TasksMax=64",
)


def properties(*others: str) -> tuple[str, ...]:
    """Return the sandbox's properties with a unit's own properties.

    Args:
        others: ``Name=value`` properties, which replace or extend the set.
    """
    named = tuple(f"{item.partition('=')[0]}=" for item in others)
    return (*(item for item in SET if not item.startswith(named)), *others)


def lines(*others: str) -> str:
    """Return the properties as lines of a unit file."""
    return "\n".join(properties(*others))


def arguments(others: Iterable[str]) -> list[str]:
    """Return the properties as arguments of ``systemd-run``."""
    return [f"--property={item}" for item in properties(*others)]
