"""Read by pyinfra before the inventory: everything that can be decided early is decided here."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from pyinfra import config

# Until all is loaded and planned (sparkwright turns it on again): a fifth of a second.
gc.disable()

# pyinfra turns this off, and would compile every role anew in every run.
sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
# A role in this folder's roles/ goes before the library's of the same name.
sys.path.insert(0, str(Path(__file__).parent))

from sparkwright.run import site  # noqa: E402

config.REQUIRE_PYINFRA_VERSION = ">=3.10,<3.11"
site.install()
