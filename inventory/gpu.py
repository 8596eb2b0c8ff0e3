"""The lab of real GPUs (lab/gpu): one virtual host for each GPU of a machine."""

import json
import os
import runpy
from pathlib import Path

_connection = runpy.run_path(str(Path(__file__).with_name("virtual.py")))["_CONNECTION"]
#: Settings that a step of `lab.gpu.prove` deploys instead.
_file = Path(".gpu/settings.json")
_settings = json.loads(_file.read_text()) if _file.is_file() else {}
_first, _hosts = (int(os.environ.get(f"LAB_GPU{name}", "1")) for name in ("_FIRST", "S"))
_hosts = _settings.pop("hosts", _hosts)
_address = _settings.pop("address", None)
_own = {
    **_connection,
    "catalog_directories": ("lab/catalog", "lab/gpu/catalog"),
    "drop_caches": False,
    "services": {"qwen3": {"recipe": "lab-qwen3-8b-h200", "port": 8000}},
    **_settings,
}

hopper = [
    (f"gpu-{number}", {"ssh_hostname": f"10.213.77.{40 + number}", **_own})
    for number in range(_first, _first + _hosts)
]
hopper[0][1]["address"] = _address
