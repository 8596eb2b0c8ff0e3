"""Requests and answers as JSON and back, with the real dataclasses and with those of hosts."""

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sparkwright.facts import programs
from sparkwright.findings.finding import Finding, Severity
from sparkwright.host import lock, observe
from sparkwright.host.jobs import JobsRequest, JobStatus
from sparkwright.host.lib import disks, documents, light_dataclasses, records
from sparkwright.host.lib.records import Malformed, decode, encode
from sparkwright.host.watch.state import WatchReport, WatchState


def test_there_and_back() -> None:
    request = JobsRequest(secrets={"/a": "b"}, wait=1.5)
    assert decode(JobsRequest, encode(request)) == request
    answers = {"a.service": JobStatus(True, False, {"state": "running", "rate": 3})}
    assert decode(dict[str, JobStatus], encode(answers)) == answers
    assert decode(tuple[str, ...], ["a", "b"]) == ("a", "b")


def test_texts_become_numbers_where_a_key_is_one() -> None:
    listener = {"command": "nginx", "cgroup": "/"}
    kind = dict[int, observe.Listener]
    assert decode(kind, {"8000": listener}) == {8000: observe.Listener("nginx", "/")}


def test_what_another_version_adds_is_passed_over_and_what_it_lacks_has_a_default() -> None:
    assert decode(lock.Owner, {"token": "t", "colour": "red"}) == lock.Owner("t")
    report = decode(WatchReport, {"at": 5, "findings": [], "ring": [{"of": "another kind"}]})
    assert report == WatchReport(5.0)


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (lock.LockRequest, {}, "LockRequest: state is missing"),
        (lock.LockRequest, {"state": 5}, "LockRequest.state: 5 is not of type str"),
        (lock.Owner, {"pid": True}, "Owner.pid: True is not of type int"),
        (WatchState, {"at": 1, "ring": [{"at": "x"}]}, "WatchState.ring.at: 'x' is not of type"),
        (disks.Disk, [], r"Disk: \[\] is not of type dict"),
        (Finding, {"id": "a", "severity": "loud"}, "Finding.severity: 'loud' is not one of"),
    ],
)
def test_what_is_wrong_is_named(kind: type, data: Any, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        decode(kind, data)


def test_lines_that_a_power_cut_tore_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('\n{"service": "a"}\n\n{torn\n[]\n')
    assert documents.lines(tmp_path / "history.jsonl") == [{"service": "a"}]


def test_a_severity_is_read_by_its_value() -> None:
    assert decode(Finding, {"id": "a", "severity": "error"}).severity is Severity.ERROR


def test_a_record_does_as_the_standard_librarys_dataclass_does() -> None:
    members = {"__annotations__": {"size": "int", "names": "tuple[str, ...]"}, "names": ("a",)}
    stock: type[Any] = dataclasses.dataclass(frozen=True)(type("Kept", (), dict(members)))
    record: type[Any] = records.dataclass(frozen=True)(type("Kept", (), dict(members)))
    assert [field.name for field in dataclasses.fields(record)] == ["size", "names"]
    for kind in (stock, record):
        kept = kind(1)
        assert repr(kept) == "Kept(size=1, names=('a',))"
        assert kept == kind(size=1) != kind(2)
        assert (hash(kept), kept == ("a",)) == (hash((1, ("a",))), False)
        assert dataclasses.asdict(dataclasses.replace(kept, size=2)) == {"size": 2, "names": ("a",)}
        for values, named in (((), {}), ((1, (), 3), {}), ((1,), {"colour": "red"})):
            with pytest.raises(TypeError):
                kind(*values, **named)
        with pytest.raises(AttributeError):
            kept.size = 2
        with pytest.raises(AttributeError):
            del kept.size


def test_light_records_are_as_the_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same contract once more, made with what hosts get in place of the standard library's."""
    monkeypatch.setitem(sys.modules, "dataclasses", light_dataclasses)
    light_records = ModuleType(records.__name__)
    monkeypatch.setitem(sys.modules, records.__name__, light_records)
    exec(compile(programs.bare(records), "records", "exec"), light_records.__dict__)
    light = ModuleType("light")
    monkeypatch.setitem(sys.modules, "light", light)
    for item in (lock, observe):
        text = programs.bare(item).replace("sparkwright.host.lock", "light")
        exec(compile(text, "light", "exec"), light.__dict__)
    real = lock.LockRequest("/state", take=lock.Owner("t", pid=4))
    made = light.LockRequest("/state", take=light.Owner("t", pid=4))
    assert encode(made) == encode(real)
    assert light_dataclasses.replace(made, state="/b").state == "/b"
    assert light.ServiceState() == light.ServiceState()
    assert {field.name for field in dataclasses.fields(lock.LockRequest)} == set(
        light.LockRequest.__dataclass_fields__
    )
    with pytest.raises(TypeError, match="state is missing"):
        light.LockRequest()
