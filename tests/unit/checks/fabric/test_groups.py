"""Hosts that share a fabric."""

from __future__ import annotations

from dataclasses import replace

from sparkwright.checks.fabric.groups import FabricLook, of_looks
from sparkwright.host.fabric import FabricState
from tests.unit.checks.fabric.states import pair


def test_hosts_are_grouped_by_what_they_see() -> None:
    one, other = pair(), pair(first=3)
    states = {**one, **other, "rtx-1": FabricState()}
    found = of_looks({name: FabricLook(state) for name, state in states.items()})
    assert [(tuple(each.states), each.shape) for each in found] == [
        (("spark-1", "spark-2"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip


def test_hosts_of_a_cluster_are_one_also_where_they_see_nobody() -> None:
    states = {**pair(), **pair(first=3)}
    unseen = {
        name: replace(one, rails=tuple(replace(rail, neighbours=()) for rail in one.rails))
        for name, one in states.items()
    }
    cluster = ("spark-2", "spark-1")
    found = of_looks(
        {
            name: FabricLook(state, cluster=cluster if name in cluster else ())
            for name, state in unseen.items()
        }
    )
    assert [(tuple(each.states), each.shape) for each in found] == [
        (("spark-2", "spark-1"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip
