"""Hosts that share a fabric."""

from __future__ import annotations

from dataclasses import replace

from sparkwright.checks.fabric.groups import fabrics
from sparkwright.host.fabric import FabricState
from tests.unit.checks.fabric.states import pair


def test_hosts_are_grouped_by_what_they_see() -> None:
    one, other = pair(), pair(first=3)
    found = fabrics({**one, **other, "rtx-1": FabricState()}, {}, {}, {})
    assert [(tuple(each.states), each.shape) for each in found] == [
        (("spark-1", "spark-2"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip


def test_hosts_of_a_cluster_are_one_also_where_they_see_nobody() -> None:
    states = {**pair(), **pair(first=3)}
    unseen = {
        name: replace(one, rails=tuple(replace(rail, neighbours=()) for rail in one.rails))
        for name, one in states.items()
    }
    clusters = dict.fromkeys(("spark-2", "spark-1"), ("spark-2", "spark-1"))
    found = fabrics(unseen, {}, clusters, {"spark-1": "sha256:a"})
    assert [(tuple(each.states), each.shape) for each in found] == [
        (("spark-2", "spark-1"), "pair"), (("spark-3", "spark-4"), "pair"),
    ]  # fmt: skip
    assert found[0].images == {"spark-1": "sha256:a"}
