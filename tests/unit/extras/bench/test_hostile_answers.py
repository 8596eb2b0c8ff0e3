"""A host answers anything at all: a typed value or a refusal of that host, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from sparkwright.extras.bench import host as bench
from sparkwright.host.bench import BenchAnswer
from sparkwright.host.lib.records import decode
from tests.unit.security.test_hostile_answers import _parsed, of

#: What every question is answered with.


@given(of(BenchAnswer))
def test_whatever_a_benchmark_ran_on_is_recorded(data: Any) -> None:
    seen = decode(bench.Facts, {**_parsed(BenchAnswer, data), "planned": {}})
    bench.gpu_of(seen, seen, seen)
    list(bench.changed(seen, seen, "chat"))
