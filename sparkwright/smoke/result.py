"""The gate's result on one service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check of the smoke test, and what it said."""

    name: str
    ok: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class Smoke:
    """The smoke test's verdict on one service."""

    passed: int
    total: int
    seconds: float
    failures: tuple[str, ...]
    checks: tuple[Check, ...] = ()
