"""Hashing models again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VerifyRequest:
    """Directories of models to hash."""

    directories: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """A model that was hashed: how much of it in how many seconds, and what is wrong."""

    files: int
    bytes: int
    seconds: float
    wrong: tuple[str, ...]
