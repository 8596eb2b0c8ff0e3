"""The fleet as virtual hosts of this machine (`make demo`), and a host that must be refused."""

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
    # The lab's registry and hub replace the real servers; no host can reach the internet.
    "image_mirrors": {
        "ghcr.io": f"http://{_DEPOT}:5000",
        "registry-1.docker.io": f"http://{_DEPOT}:5000",
        "lab.invalid": f"http://{_DEPOT}:5000",
        "https://github.com/AEON-7/vllm-dflash": f"http://{_DEPOT}:8880/git/AEON-7/vllm-dflash",
    },
    "catalog_directories": ("lab/catalog",),
    # `sparkwright lock INVENTORY --data lock_file=.sparkwright/virtual.lock` makes this lock.
    **({"lock_file": _LOCK} if Path(_LOCK).is_file() else {}),
    "hub_endpoint": f"http://{_DEPOT}:8880",
    "disk_headroom_gib": 1,
    # All hosts share the page cache of this machine.
    "drop_caches": False,
    # The lab's engines compile nothing that takes memory, and a second start would slow the tests.
    "second_boot": False,
}


def _host(name: str, address: str) -> tuple[str, dict[str, object]]:
    return (name, {"ssh_hostname": address, **_CONNECTION})


sparks = [_host("spark-1", "10.213.77.11"), _host("spark-2", "10.213.77.12")]

# The whole fleet has one image, so that one tag can be rolled out to all hosts. The real image is
# only for arm64; the lab's registry and lab/catalog have the image for amd64, too.
_SERVICES = runpy.run_path(str(Path(__file__).parents[1] / "group_data/rtx50.py"))["services"]
_RTX = {
    name: {**service, "recipe": "qwen36-35b-a3b-heretic-dflash-rtx5090"}
    for name, service in _SERVICES.items()
}

# hopper-1 has an H200. This host is in the group of RTX 50 boxes, so that preflight must refuse a
# host that can't run the recipe, and leave the host unchanged.
rtx50 = [_host("rtx-1", "10.213.77.13"), _host("hopper-1", "10.213.77.14")]
for _, _data in rtx50:
    _data["services"] = _RTX
