"""Eight Sparks of the virtual fleet: for measurements with many hosts."""

import runpy
from typing import Any

from lab import layout as _layout

_virtual = runpy.run_path("inventory/virtual.py")
_connection = {
    key: value
    for key, value in _virtual["sparks"][0][1].items()
    if key not in ("ssh_hostname", "lock_file")
}
sparks: list[tuple[str, dict[str, Any]]] = [
    (machine.name, {"ssh_hostname": machine.address, **_connection})
    for machine in _layout.MACHINES
    if machine.name.startswith("spark-")
]
