"""Read by pyinfra before the inventory: everything that can be decided early is decided here."""

from __future__ import annotations

from pyinfra import config

from roles import site

config.REQUIRE_PYINFRA_VERSION = ">=3.10,<4"
site.install()
