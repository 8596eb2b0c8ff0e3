"""A host answers anything at all: a typed value or a refusal of that host, and nothing else."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench import host as bench
from sparkwright.facts.answers import parse
from sparkwright.facts.programs import BEGIN, END
from sparkwright.host.bench import BenchAnswer
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.doctor import Examination
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib import records
from sparkwright.host.lib.records import encode
from sparkwright.host.lock import LockAnswer
from sparkwright.host.observation import Observation
from sparkwright.host.removal import RemovalAnswer
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.host.smoke.deep import DeepAnswer
from sparkwright.host.status import HostStatus
from sparkwright.host.verify_models import Verified
from tests.unit.builders import plan, wanted

#: What every question is answered with.
ANSWERS: list[Any] = [
    Observation, HostStatus, Examination, BenchAnswer, DiskUsage, LockAnswer, RemovalAnswer,
    tuple[str, ...], dict[str, JobStatus], dict[str, SmokeAnswer], dict[str, DeepAnswer],
    dict[str, Verified],
]  # fmt: skip

DESIRED = wanted(plan())

_TEXT = st.sampled_from(
    ["", "chat", "qwen36", "\x1b[2J", "9" * 5000, "-1", "nan", "1e999", "\ud800", "a=b", "\u0661",
     "12.1", "580.95", "active", "active\n", "--max-model-len \"", "2026-01-01T00:00:00Z", "{[",
     "NVRM: Xid (x): " + "9" * 5000, "NVIDIA GB10", "error", "99999.99999", "9" * 5000 + ".1"]
)  # fmt: skip

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _TEXT

_ANY = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def of(kind: Any) -> st.SearchStrategy[Any]:
    """JSON data that a contract accepts, as strange as it may be."""
    if hasattr(kind, "__dataclass_fields__"):
        fields = records._fields(kind)
        return st.fixed_dictionaries({name: of(inner) for name, (inner, _) in fields.items()})
    if isinstance(kind, UnionType):
        return st.one_of(*(st.none() if one is type(None) else of(one) for one in kind.__args__))
    origin: Any = getattr(kind, "__origin__", None)
    parts: tuple[Any, ...] = getattr(kind, "__args__", ())
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(of(parts[0]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(of, parts)).map(list)
    if origin is dict:
        keys = st.integers(0, 65535).map(str) if parts[0] is int else _TEXT
        return st.dictionaries(keys, of(parts[1]), max_size=2)
    whole = st.integers(-(1 << 63), 1 << 63)
    plain = {str: _TEXT, bool: st.booleans(), int: whole, object: _ANY}
    if kind is float:
        return whole | st.floats(-1e19, 1e19)
    return plain[kind] if kind in plain else st.sampled_from([one.value for one in kind])


def _marked(answer: str) -> list[str]:
    return [BEGIN, answer, END]


def _parsed(kind: Any, data: Any) -> Any:
    return encode(parse("l", _marked(json.dumps(data)), kind))


@given(of(BenchAnswer))
def test_whatever_a_benchmark_ran_on_is_recorded(data: Any) -> None:
    seen = bench.facts({**_parsed(BenchAnswer, data), "planned": {}})
    bench.gpu_of(seen, seen, seen)
    list(bench.changed(seen, seen, "chat"))
