"""The table of `sparkwright top`: rates of two samples, and its fit in 80 columns."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.load import HostLoad
from sparkwright.results.load import Line, Seen, lines, problems, table
from tests.unit.security.test_hostile_answers import EVIL, harmless

GIB = 1 << 30
GB10 = Gpu("NVIDIA GB10", power_w=61.4, temperature_c=64.0, busy_percent=96.0)
RTX = Gpu(
    "NVIDIA GeForce RTX 5090", power_w=402.0, temperature_c=71.0, busy_percent=88.0,
    memory_mib=32607, memory_used_mib=29000,
)  # fmt: skip
BUSY = {
    "generated": 1000.0, "running": 3.0, "waiting": 1.0, "cache_used": 0.42, "drafted": 4000.0,
    "accepted": 2000.0,
}  # fmt: skip
SPARK = HostLoad(100.0, {"qwen36": BUSY}, (GB10,), 120 * GIB, 20 * GIB)


def after(seconds: float, **service: Any) -> HostLoad:
    """The load of the Spark, ``seconds`` later."""
    return replace(SPARK, at=100.0 + seconds, services={"qwen36": {**BUSY, **service}})


def line(*looks: HostLoad) -> Line:
    seen = Seen()
    for look in looks:
        seen = seen.then(look)
    (result,) = lines({"spark-1": seen})
    return result


def test_rates_cover_the_last_interval() -> None:
    result = line(SPARK, after(5), after(7, generated=1241.0, drafted=4400.0, accepted=2300.0))
    assert result.tokens == 120.5
    assert result.accepted == 0.75
    assert (result.running, result.waiting, result.cache) == (3.0, 1.0, 0.42)


def test_one_sample_gives_no_rate() -> None:
    result = line(SPARK)
    assert (result.tokens, result.accepted, result.running) == (None, None, 3.0)


def test_a_restarted_counter_gives_no_negative_rate() -> None:
    result = line(SPARK, after(2, generated=10.0, drafted=40.0, accepted=2.0))
    assert (result.tokens, result.accepted) == (None, None)
    restarted = after(4, generated=110.0, drafted=80.0, accepted=22.0)
    again = line(after(2, generated=10.0, drafted=40.0, accepted=2.0), restarted)
    assert (again.tokens, again.accepted) == (50.0, 0.5)
    assert line(SPARK, replace(SPARK, at=3.0)).tokens is None  # a boot came between


def test_card_memory_of_several_gpus_is_shown() -> None:
    cold = replace(RTX, busy_percent=1.0, temperature_c=None)
    result = line(replace(SPARK, gpus=(cold, RTX)))
    assert (result.gpu, result.power, result.temperature) == (88.0, 402.0, 71.0)
    assert (result.used, result.total) == (2 * 29000 << 20, 2 * 32607 << 20)
    unified = line(SPARK)
    assert (unified.used, unified.total) == (100 * GIB, 120 * GIB)


def test_a_fleet_with_a_silent_host_fits_in_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    fleet = {
        "spark-1": Seen().then(SPARK).then(after(2, generated=101000.0, drafted=5000.0)),
        "spark-2": Seen().then(replace(SPARK, services={"another": BUSY, "down": None})),
        "rtx-1": Seen().then(SPARK).then(OSError("not reached: timed out")),
        "new": Seen(),
    }
    result = list(lines(fleet))
    assert table(result) == [
        "HOST     SERVICE  TOK/S    RUN  WAIT  KV   ACC  GPU  W   °C  MEM GiB",
        "spark-1  qwen36   50000.0  3    1     42%  0%   96%  61  64  100/120",
        "spark-2  another  -        3    1     42%  -    96%  61  64  100/120",
        "spark-2  down     -        -    -     -    -    96%  61  64  100/120",
        "rtx-1    -        -        -    -     -    -    -    -   -   -",
        "new      -        -        -    -     -    -    -    -   -   -",
    ]
    assert problems(result) == [
        "spark-2: down: no metrics: the service does not serve",
        "rtx-1: not reached: timed out",
        "new: no answer yet",
    ]
    assert [line.service for line in lines(fleet, lambda _, name: name == "down")] == [
        "down",
        None,
        None,
    ]


def test_a_hostile_host_writes_only_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table omits escapes, and numbers and names that are too wide."""
    monkeypatch.setenv("COLUMNS", "110")
    huge = {**dict.fromkeys(BUSY, 9e17), "waiting": -9e17}
    card = replace(RTX, name=EVIL, power_w=9e17, memory_used_mib=10**18)
    first = HostLoad(0.0, {EVIL: BUSY}, (card,), 2**62, -(2**62))
    fleet = {
        "h": Seen().then(first).then(replace(first, at=1e-9, services={EVIL: huge})),
        EVIL: Seen().then(OSError(f"{EVIL}\nforged")),
    }
    result = list(lines(fleet))
    assert harmless("\n".join(table(result)))
    assert all(len(row) <= 110 for row in table(result))
    assert len(problems(result)) == 1
    assert harmless(problems(result)[0])
