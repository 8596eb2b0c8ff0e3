"""Sandbox of sparkwright's units: it permits only what they need (systemd.exec(5)).

One set for all of them, services and jobs: a unit names what it has otherwise, and why. They run as
root, without a capability: root owns Docker's socket and the files with keys, and nothing else of
root is left to them.
"""

from __future__ import annotations

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
    """The set, with what a unit has otherwise.

    Args:
        others: ``Name=value``: in place of what the set has under that name, or beyond the set.
    """
    named = set(map(_name, others))
    return (*(item for item in SET if _name(item) not in named), *others)


def lines(*others: str) -> str:
    """The same as lines of a unit's file."""
    return "\n".join(properties(*others))


def arguments(others: Iterable[str]) -> list[str]:
    """The same as arguments of ``systemd-run``."""
    return [f"--property={item}" for item in properties(*others)]


def _name(setting: str) -> str:
    return setting.partition("=")[0]
