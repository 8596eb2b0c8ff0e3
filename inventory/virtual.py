"""The same fleet as virtual hosts of this machine (`make demo`), and one that must be refused."""

import runpy
from pathlib import Path

_STATE = "/var/lib/sparkwright-lab"
_DEPOT = "10.213.77.2"
_LOCK = ".sparkwright/virtual.lock"

_CONNECTION = {
    "ssh_user": "spark",
    "ssh_key": f"{_STATE}/ssh/id_ed25519",
    "ssh_known_hosts_file": f"{_STATE}/ssh/known_hosts",
    "ssh_strict_host_key_checking": "yes",
    # The lab's registry and hub stand in for the real ones; no host has a way out.
    "image_mirrors": {
        "ghcr.io": f"http://{_DEPOT}:5000",
        "registry-1.docker.io": f"http://{_DEPOT}:5000",
        "lab.invalid": f"http://{_DEPOT}:5000",
        "https://github.com/AEON-7/vllm-dflash": f"http://{_DEPOT}:8880/git/AEON-7/vllm-dflash",
    },
    "catalog_directories": ("lab/catalog",),
    # Once `sparkwright lock INVENTORY --data lock_file=.sparkwright/virtual.lock` made it.
    **({"lock_file": _LOCK} if Path(_LOCK).is_file() else {}),
    "hub_endpoint": f"http://{_DEPOT}:8880",
    "disk_headroom_gib": 1,
    # They all have the page cache of this machine.
    "drop_caches": False,
    # Their engines compile nothing that takes memory, and a further start takes the tests' time.
    "second_boot": False,
}


def _host(name: str, address: str) -> tuple[str, dict[str, object]]:
    return (name, {"ssh_hostname": address, **_CONNECTION})


sparks = [_host("spark-1", "10.213.77.11"), _host("spark-2", "10.213.77.12")]

# One image for the whole fleet, so that one tag can be rolled through it. The real one is for arm64
# alone; the lab's registry and lab/catalog have it for amd64 too.
_SERVICES = runpy.run_path(str(Path(__file__).parents[1] / "group_data/rtx50.py"))["services"]
_RTX = {
    name: {**service, "recipe": "qwen36-35b-a3b-heretic-dflash-rtx5090"}
    for name, service in _SERVICES.items()
}

# hopper-1 has an H200. It stands among the RTX 50 boxes to show what happens to a host that
# can't run the recipe: preflight refuses it by name and leaves it as it is.
rtx50 = [_host("rtx-1", "10.213.77.13"), _host("hopper-1", "10.213.77.14")]
for _, _data in rtx50:
    _data["services"] = _RTX
