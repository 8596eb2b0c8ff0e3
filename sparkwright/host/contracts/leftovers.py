"""Secrets that an earlier version left in files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeftoversRequest:
    """Where they are looked for."""

    services_root: str
