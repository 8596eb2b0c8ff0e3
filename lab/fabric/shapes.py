"""FAKE fabrics: Sparks cabled as a pair, as a ring, or to a switch."""

from lab.fabric.tree import Port, Spark

#: The shape of eugr's and sparkrun's netplan files.
SUBNETS = ("192.168.177", "192.168.178")


def pair(cage: int = 1, other: int | None = None) -> tuple[Spark, Spark]:
    """Two Sparks with one cable, in the same cage, or in cage ``other`` of the second Spark."""
    sparks = (Spark(1), Spark(2))
    at = (cage, cage if other is None else other)
    for spark, mine, theirs in zip(sparks, at, reversed(at), strict=True):
        far = sparks[1] if spark is sparks[0] else sparks[0]
        # Both twins share the port: each sees both twins of the other side.
        sees = tuple(far.mac(theirs, twin) for twin in (0, 1))
        spark.ports = {
            (mine, twin): Port(True, f"{SUBNETS[twin]}.{10 + spark.number}/24", sees=sees)
            for twin in (0, 1)
        }
    return sparks


def ring(number: int) -> tuple[Spark, ...]:
    """Sparks whose port 0 is cabled to the next Spark's port 1."""
    sparks = tuple(Spark(item) for item in range(1, number + 1))
    for position, spark in enumerate(sparks):
        after, before = sparks[(position + 1) % number], sparks[position - 1]
        ports = {}
        for cage, cable, far in ((0, position, after), (1, (position - 1) % number, before)):
            for twin in (0, 1):
                address = f"192.168.{177 + 2 * cable + twin}.{10 + spark.number}/24"
                sees = (far.mac(1 - cage, twin),)
                ports[cage, twin] = Port(True, address, sees=sees)
        spark.ports = ports
    return sparks


def switch(number: int, cage: int = 1) -> tuple[Spark, ...]:
    """Sparks that are cabled to one switch."""
    sparks = tuple(Spark(item) for item in range(1, number + 1))
    for spark in sparks:
        others = [item for item in sparks if item is not spark]
        sees = tuple(other.mac(cage, twin) for other in others for twin in (0, 1))
        spark.ports = {
            (cage, twin): Port(True, f"{SUBNETS[twin]}.{10 + spark.number}/24", sees=sees)
            for twin in (0, 1)
        }
    return sparks
