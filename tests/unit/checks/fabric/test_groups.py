"""Hosts that share a fabric."""

from dataclasses import replace

from sparkwright.checks.fabric.groups import FabricLook, of_looks
from sparkwright.host.fabric import FabricState
from tests.unit.checks.fabric.states import pair


def test_hosts_are_grouped_by_their_visible_neighbours() -> None:
    item, other = pair(), pair(first=3)
    states = {**item, **other, "rtx-1": FabricState()}
    result = of_looks({name: FabricLook(state) for name, state in states.items()})
    assert [(tuple(each.states), each.shape) for each in result] == [
        (("spark-1", "spark-2"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip


def test_hosts_of_a_cluster_are_grouped_even_without_neighbours() -> None:
    states = {**pair(), **pair(first=3)}
    unseen = {
        name: replace(item, rails=tuple(replace(rail, neighbours=()) for rail in item.rails))
        for name, item in states.items()
    }
    cluster = ("spark-2", "spark-1")
    result = of_looks(
        {
            name: FabricLook(state, cluster=cluster if name in cluster else ())
            for name, state in unseen.items()
        }
    )
    assert [(tuple(each.states), each.shape) for each in result] == [
        (("spark-2", "spark-1"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip
