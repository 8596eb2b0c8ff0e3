"""The virtual fleet with four hosts that can serve, only for the measurement."""

import runpy
from typing import Any

_virtual = runpy.run_path("inventory/virtual.py")
_names = {"hopper-1": "rtx-2"}

sparks: list[tuple[str, dict[str, Any]]] = _virtual["sparks"]
rtx50: list[tuple[str, dict[str, Any]]] = [
    (_names.get(name, name), data) for name, data in _virtual["rtx50"]
]
