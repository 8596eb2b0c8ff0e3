"""States of hosts of a fabric, as the host program returns them."""

from dataclasses import replace
from ipaddress import ip_interface

from lab.fabric import shapes
from lab.fabric.tree import DEVICES, MANAGEMENT, Port, Spark
from sparkwright.host.fabric import FabricState, Gid, Neighbour, Rail, Rdma


def state(spark: Spark) -> FabricState:
    """State that ``host/fabric.py`` reads from a Spark's files."""
    rails = []
    for position, (name, hca, _) in DEVICES.items():
        port = spark.ports.get(position, Port())
        gids = (Gid(3, str(ip_interface(port.address).ip), "RoCE v2"),) if port.address else ()
        rails.append(
            Rail(
                name, *position, spark.mac(*position), port.up, port.mtu,
                port.speed if port.up else None, (port.address,) if port.address else (),
                Rdma(hca, "ACTIVE" if port.up else "DOWN", 200.0, gids),
                tuple(Neighbour(mac, "kernel") for mac in port.sees),
            )
        )  # fmt: skip
    return FabricState(
        tuple(rails), {MANAGEMENT: (f"{spark.address}/24",)}, MANAGEMENT, spark.kernel,
        0, spark.driver,
    )  # fmt: skip


def _named(sparks: tuple[Spark, ...]) -> dict[str, FabricState]:
    return {f"spark-{spark.number}": state(spark) for spark in sparks}


def pair(first: int = 1) -> dict[str, FabricState]:
    """Two hosts joined by one cable, with numbers from ``first`` on."""
    sparks = shapes.pair()
    macs = {spark.mac(cage, twin): (spark.number, cage, twin)
            for spark in sparks for cage, twin in DEVICES}  # fmt: skip
    for item in sparks:
        for port in item.ports.values():
            port.sees = tuple(_renumbered(first, *macs[mac]) for mac in port.sees)
    return _named(tuple(replace(spark, number=spark.number + first - 1) for spark in sparks))


def _renumbered(first: int, number: int, cage: int, twin: int) -> str:
    """The MAC of a device of a renumbered host."""
    return Spark(number + first - 1).mac(cage, twin)


def ring(number: int) -> dict[str, FabricState]:
    """Hosts whose port 0 is cabled to the next host's port 1."""
    return _named(shapes.ring(number))


def switch(number: int) -> dict[str, FabricState]:
    """Hosts at one switch."""
    return _named(shapes.switch(number))
