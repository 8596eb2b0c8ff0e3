"""A hostile host's account of its fabric: its words go into commands of other hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import Fabric
from sparkwright.extras.fabric_test.measure import plan
from sparkwright.facts.asking import HostError
from sparkwright.host.fabric import FabricState, Gid, Neighbour, Rdma
from sparkwright.operations.fabric.looking import state_of
from tests.operations.harness import fake
from tests.unit.checks.fabric.states import pair


def _hostile(**changes: Any) -> FabricState:
    state = pair()["spark-1"]
    rails = tuple(replace(one, **changes) if one.carrier else one for one in state.rails)
    return replace(state, rails=rails)


HOSTILE = {
    "an option in place of an address": _hostile(addresses=("--out_json_file=/etc/cron.d/x.",)),
    "a command in place of an address": _hostile(addresses=("$(reboot).1/24",)),
    "an option in place of a device": _hostile(name="--help"),
    "a line break in a device": _hostile(name="a\n      gateway4: 10.0.0.1"),
    "a command in an RDMA device": _hostile(rdma=Rdma("$(reboot)", "ACTIVE")),
    "a list in an RDMA device": _hostile(rdma=Rdma("mlx5_0,^mlx5_1", "ACTIVE")),
    "a GID that is none": _hostile(rdma=Rdma("mlx5_0", "ACTIVE", 1.0, (Gid(3, "x", "RoCE v2"),))),
    "a MAC that is none": _hostile(neighbours=(Neighbour("\x1b[2J", "kernel"),)),
    "another address": replace(pair()["spark-1"], interfaces={"enP7s7": ("-oProxyCommand=x",)}),
    "another interface": replace(pair()["spark-1"], interfaces={"-x": ("10.0.0.1/24",)}),
    "the management": replace(pair()["spark-1"], management="a b"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_its_words_reach_no_command(how: str) -> None:
    with pytest.raises(HostError, match=r"not a valid answer: .* is no "):
        state_of(fake(None, fabric=HOSTILE[how]))  # type: ignore[arg-type]


def test_an_honest_account_is_taken() -> None:
    state = pair()["spark-1"]
    assert state_of(fake(None, fabric=state)) == state  # type: ignore[arg-type]


def test_what_one_host_says_is_a_number_on_another() -> None:
    found = plan(Fabric(pair(), "pair"), {}, dict.fromkeys(pair(), True))
    words = [one.address for each in found.pairs for one in each.write]
    words += [one.address for every in found.pings.values() for one in every]
    assert words
    assert all(set(one) <= set("0123456789.") for one in words)
