"""Four replicas, each with its own proxy, behind another proxy on a host without a service."""

import http.client
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from lab import fleet, machines
from lab.layout import SPARES
from tests.fleet.bad_tags import IMAGE, add_faults
from tests.fleet.site import MACHINES, Run, Site, bare

BALANCER = "10.213.77.14"
REPLICAS = ("spark-1", "spark-2", "spark-3", "rtx-1")
HOSTS = """

for _hosts in (sparks, rtx50):
    for _name, _data in _hosts:
        _data["services"] = {
            "qwen36": {
                "recipe": "qwen36-35b-a3b-heretic-dflash"
                + ("-rtx5090" if _name == "rtx-1" else ""),
                "boot_seconds": 12, "first_answer_seconds": 6,
            },
        }
sparks.append(_host("spark-3", "10.213.77.23"))
sparks[-1][1]["services"] = sparks[0][1]["services"]
rtx50 = rtx50[:1]
gateways = [_host("hopper-1", "10.213.77.14")]
gateways[0][1].update(services={}, address={"port": 8080})
"""


def open_ports(address: str) -> set[int]:
    """Ports of a host that accept a connection from the controller."""

    def taken(port: int) -> bool:
        with socket.socket() as item:
            item.settimeout(2)
            return item.connect_ex((address, port)) == 0

    ports = range(1, 65536)
    with ThreadPoolExecutor(64) as pool:
        return {port for port, there in zip(ports, pool.map(taken, ports), strict=True) if there}


@contextmanager
def four_replicas(site: Site) -> Iterator[Site]:
    """Start the replicas and their proxies, and restore the fleet at the end."""
    (spark_3,) = (spare for spare in SPARES if spare.name == "spark-3")
    MACHINES["spark-3"] = spark_3
    site.power_on()
    fleet.up(("spark-3",))
    site.repair()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / "inventory/proxies.py").write_text(inventory + HOSTS)
    add_faults(site)
    site.rollout(soak_seconds=8, notice_seconds=7)
    try:
        deploy(site)
        yield site
    finally:
        site.restore(IMAGE)
        for host in (*REPLICAS, "hopper-1"):
            bare(host)
        del MACHINES["spark-3"]
        machines.remove(spark_3)
        site.repair()


def deploy(site: Site, *arguments: str, code: int = 0) -> Run:
    run = site.run("--yes", *arguments, inventory="inventory/proxies.py")
    assert run.code == code, run.output
    return run


def status(
    address: str, port: int, method: str, path: str, key: str | None = None, body: str | None = None
) -> int:
    connection = http.client.HTTPConnection(address, port, timeout=10)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        headers |= {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body=body, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
