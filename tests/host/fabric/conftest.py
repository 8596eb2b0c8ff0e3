"""Captured trees of Sparks."""

from tests.host.fabric.looking import look

__all__ = ["look"]
