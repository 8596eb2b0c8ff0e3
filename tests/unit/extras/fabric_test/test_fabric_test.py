"""``sparkwright fabric test``: judged and measured hosts with a ConnectX-7, and hostile hosts."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import Fabric, FabricLook
from sparkwright.extras.fabric_test.command import FAILED, SKIPPED, FabricResult, judged
from sparkwright.extras.fabric_test.fabric_measure import MeasureAnswer, Measurement, MeasureRequest
from sparkwright.extras.fabric_test.measure import Step, plan
from sparkwright.facts.asking import HostError
from sparkwright.facts.fabric import state_of
from sparkwright.host.fabric import FabricState, Gid, Neighbour, Rdma
from tests.golden import compare
from tests.operations.harness import fake
from tests.unit.checks.fabric.states import pair, ring, switch
from tests.unit.cli.answering import Asked, answering
from tests.unit.cli.fleet_of_five import run
from tests.unit.cli.test_fabric import site as site

IMAGES = dict.fromkeys(("spark-1", "spark-2", "spark-3", "spark-4"), "vllm:a")


def tooled(states: dict[str, FabricState], *tools: str, image: str | None = "a") -> Fabric:
    """A fabric whose hosts have these tools, and an image."""
    shape = {2: "pair", 3: "ring", 4: "switch"}[len(states)]
    states = {name: replace(item, tools=tools, image=image) for name, item in states.items()}
    return Fabric(states, shape)


def planned(states: dict[str, FabricState]) -> tuple[Fabric, list[Step]]:
    fabric = tooled(states, "ib_write_bw")
    return fabric, plan(fabric, IMAGES)


@pytest.mark.parametrize(
    ("shape", "states"), [("pair", pair()), ("ring", ring(3)), ("switch", switch(4))]
)
def test_pings_fill_every_rail_and_pairs_write_over_both_twins(
    shape: str, states: dict[str, FabricState]
) -> None:
    """The plan tests a ring's cables and a switch's neighbours; ranks get their own variables."""
    steps = [asdict(step) for step in planned(states)[1]]
    for request in steps[-1]["requests"].values():
        assert "torch.distributed" in request["gather"].pop("script")
    compare(f"fabric/{shape}.json", json.dumps(steps, indent=1) + "\n")


@pytest.mark.parametrize(
    ("fabric", "images", "tests"),
    [
        (tooled(pair(), "ib_write_bw"), {}, ["ping", "", "ib_write_bw"]),
        (tooled(pair(), "ib_write_bw"), {"spark-1": "a"}, ["ping", "", "ib_write_bw"]),
        (tooled(pair(), image=None), IMAGES, ["ping"]),
        (tooled(pair()), IMAGES, ["ping", "all-gather"]),
    ],
)
def test_missing_hardware_is_not_measured(
    fabric: Fabric, images: dict[str, str | None], tests: list[str]
) -> None:
    assert [step.test for step in plan(fabric, images)] == tests


def measured(gbits: float, gathered: Measurement, states: dict[str, FabricState]) -> FabricResult:
    """The result of hosts that answer every request with these rates."""
    fabric, steps = planned(states)
    answers = [
        {name: _measured(each, gbits, gathered).measured for name, each in step.requests.items()}
        for step in steps
    ]
    return FabricResult(tuple(states), fabric.shape, (), judged(fabric, steps, answers))


def _gathered(gbytes: float, backend: str = "nccl") -> Measurement:
    return Measurement("all-gather", value=gbytes, backend=backend)


@pytest.mark.parametrize(("gbits", "gbytes"), [(46.0, 22.4), (92.6, 11.0)])
def test_half_the_rate_is_a_failure_except_in_a_ring(gbits: float, gbytes: float) -> None:
    result = measured(gbits, _gathered(gbytes), pair())
    assert not result.well
    assert FAILED in {measure.verdict for measure in result.measures}
    assert measured(92.6, _gathered(11.0), ring(3)).well


def test_silent_hosts_and_faults_fail_the_test() -> None:
    fabric, steps = planned(pair())
    ping = Measurement("ping", "enp1s0f1np1", "192.168.177.12", 8972, fault="message too long")
    gather = Measurement("all-gather", fault="NCCL WARN Call to ibv_modify_qp failed")
    measures = judged(fabric, steps, [{"spark-1": [ping]}, {}, {}, {"spark-1": [gather]}])
    assert {measure.verdict for measure in measures} == {FAILED}
    assert [(measure.test, measure.where, measure.output) for measure in measures] == [
        ("ping", "spark-1 enp1s0f1np1 to 192.168.177.12", "message too long"),
        ("ping", "spark-2", "no answer"), ("ib_write_bw", "spark-2 to spark-1", "no answer"),
        ("all-gather", "2 ranks", "NCCL WARN Call to ibv_modify_qp failed"),
    ]  # fmt: skip


def test_a_rate_without_a_gpu_is_not_judged() -> None:
    last = measured(92.6, _gathered(0.4, "gloo"), pair()).measures[-1]
    assert (last.verdict, last.output) == (SKIPPED, "measured over gloo, since nccl needs a GPU")


def _answering(
    monkeypatch: pytest.MonkeyPatch, states: dict[str, FabricState], gbits: float = 92.6
) -> list[Asked]:
    """Give hosts these answers and this speed; return the requests to the hosts."""
    tooled = {
        name: replace(item, tools=("ib_write_bw",) if item.rails else (), image="sha256:a")
        for name, item in states.items()
    }

    def answer(asked: Asked) -> dict[str, Any]:
        if asked.name == "fabric":
            return {name: FabricLook(state, "vllm:a") for name, state in tooled.items()}
        requests = {name: asked.arguments["requests"][name] for name in asked.hosts.limit}
        return {name: _measured(each, gbits, _gathered(22.0)) for name, each in requests.items()}

    return answering(monkeypatch, answer)


def _measured(request: MeasureRequest, gbits: float, gathered: Measurement) -> MeasureAnswer:
    pings = [Measurement("ping", ping.device, ping.address, ping.size) for ping in request.pings]
    wrote = [Measurement("ib_write_bw", item.device, item.address, gbits) for item in request.write]
    return MeasureAnswer((*pings, *wrote, *([gathered] if request.gather else [])))


def test_a_faultless_fabric_passes_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _answering(monkeypatch, {**pair(), "spark-3": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "spark-1, spark-2: pair, no faults"
    assert "92.6 Gb/s" in done.output
    assert "22.0 GB/s" in done.output
    # A host without a ConnectX measures nothing; pairs measure one after the other.
    assert [item.hosts.limit for item in asked] == [
        (), ("spark-1", "spark-2"), ("spark-1",), ("spark-2",), ("spark-1", "spark-2"),
    ]  # fmt: skip


def test_faults_and_slow_links_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    states = pair()
    states["spark-2"] = replace(states["spark-2"], cma_over=9 << 30)
    _answering(monkeypatch, states, gbits=46.1)
    done = run("fabric", "test")
    assert done.exit_code == 1
    assert "pair, faults" in done.output
    assert "error: fabric-cma: spark-2" in done.output
    assert done.output.count("failed") == 2  # one rate for each twin


def test_the_option_look_measures_nothing_and_hosts_without_a_connectx_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = _answering(monkeypatch, pair())
    done = run("fabric", "test", "--look")
    assert (done.exit_code, done.output) == (0, "spark-1, spark-2: pair, no faults\n")
    assert {item.hosts.limit for item in asked} == {()}
    _answering(monkeypatch, {"spark-1": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 2
    assert "no host has a ConnectX" in done.output


def _hostile(**changes: Any) -> FabricState:
    state = pair()["spark-1"]
    rails = tuple(replace(rail, **changes) if rail.carrier else rail for rail in state.rails)
    return replace(state, rails=rails)


HOSTILE = {
    "an option in place of an address": _hostile(addresses=("--out_json_file=/etc/cron.d/x.",)),
    "a command in place of an address": _hostile(addresses=("$(reboot).1/24",)),
    "an option in place of a device": _hostile(name="--help"),
    "a line break in a device": _hostile(name="a\n      gateway4: 10.0.0.1"),
    "a command in an RDMA device": _hostile(rdma=Rdma("$(reboot)", "ACTIVE")),
    "a list in an RDMA device": _hostile(rdma=Rdma("mlx5_0,^mlx5_1", "ACTIVE")),
    "an invalid GID": _hostile(rdma=Rdma("mlx5_0", "ACTIVE", 1.0, (Gid(3, "x", "RoCE v2"),))),
    "an invalid MAC": _hostile(neighbours=(Neighbour("\x1b[2J", "kernel"),)),
    "another address": replace(pair()["spark-1"], interfaces={"enP7s7": ("-oProxyCommand=x",)}),
    "another interface": replace(pair()["spark-1"], interfaces={"-x": ("10.0.0.1/24",)}),
    "the management": replace(pair()["spark-1"], management="a b"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hosts_text_reaches_no_command(how: str) -> None:
    with pytest.raises(HostError, match=r"not a valid answer: .* is not an? "):
        state_of(fake(None, fabric=HOSTILE[how]))  # type: ignore[arg-type]


def test_an_honest_answer_is_accepted() -> None:
    state = pair()["spark-1"]
    assert state_of(fake(None, fabric=state)) == state  # type: ignore[arg-type]


def test_a_hosts_address_reaches_another_host_only_as_numbers() -> None:
    requests = [each for step in planned(pair())[1] for each in step.requests.values()]
    addresses = [stream.address for each in requests for stream in each.write]
    addresses += [ping.address for each in requests for ping in each.pings]
    assert addresses
    assert all(set(address) <= set("0123456789.") for address in addresses)
