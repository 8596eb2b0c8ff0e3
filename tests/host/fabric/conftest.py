"""Captured trees of Sparks."""

from __future__ import annotations

from tests.host.fabric.looking import look

__all__ = ["look"]
