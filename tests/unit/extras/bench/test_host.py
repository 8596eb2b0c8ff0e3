"""Facts of a benchmarked host, and stored results."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparkwright.extras.bench.host import Facts, facts_of, gpu_of, image_of, remarks, settings_of
from sparkwright.extras.bench.results import Cell, Result
from sparkwright.extras.bench.store import load, save
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.docker import Container
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.load import HostLoad
from sparkwright.host.status import HostStatus, KeptRelease, ServiceStatus
from sparkwright.run import questions
from tests.operations.sites import site, spark
from tests.tables import Tables
from tests.unit.builders import kept_service, plan
from tests.unit.extras.bench.bench_results import NOON, cell, result

cases = Tables(__file__)
GB10 = Gpu("NVIDIA GB10", driver="580.95.05")
IDLE = replace(GB10, clock_mhz=208, clock_max_mhz=3003, temperature_c=41)
DIGEST = f"sha256-{'ab' * 32}"


def loaded(*clocks: float | None) -> Facts:
    hot = replace(GB10, temperature_c=71, power_w=62.5)
    return Facts(IDLE, tuple(replace(hot, clock_mhz=clock) for clock in clocks))


def test_the_clock_is_measured_under_load_and_never_idle() -> None:
    run = gpu_of(Facts(IDLE), loaded(2400, 2418, None, 2430))
    assert (run.clock_mhz, run.clock_max_mhz, run.temperature_c) == (2418, 3003, 71)
    assert (run.name, run.driver, run.power_w) == ("NVIDIA GB10", "580.95.05", 62.5)
    assert gpu_of(Facts(IDLE), None).clock_mhz is None
    # A figure that the driver lacks is unknown.
    run = gpu_of(Facts(), loaded(None))
    assert (run.name, run.driver, run.clock_mhz) == ("unknown GPU", None, None)


def test_the_image_has_its_digest_and_the_tag_of_the_release_that_runs() -> None:
    running = replace(kept_service("a"), image=f"reg.example:5000/a/b:{DIGEST}", tag="old")
    image = image_of(running)
    assert (image.name, image.digest) == ("reg.example:5000/a/b:old", DIGEST.replace("-", ":"))
    assert image_of(replace(running, image="a/b:1", tag="1")).digest is None


def test_settings_have_single_values_and_the_drafts_length() -> None:
    settings = settings_of(plan().services[0])
    assert settings["num_speculative_tokens"] == 11
    assert settings["enable_prefix_caching"] is True
    assert "speculative_config" not in settings


def test_a_change_during_the_run_is_reported() -> None:
    def seen(release: str, *samples: Gpu) -> Facts:
        return Facts(GB10, samples, {"a": kept_service(release)}, {"a": "x"})

    assert list(remarks("a", seen("x"), seen("x", GB10))) == []
    assert list(remarks("a", seen("x"), seen("y", GB10))) == [
        "release x ran at the start, and y at the end"
    ]
    assert list(remarks("a", seen("x"), None)) == [
        "the GPU was not observed under load: its clock is unknown"
    ]


@pytest.mark.parametrize("running", [True, False])
def test_running_releases_are_read_from_containers_and_the_gpu_under_load(
    running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = spark("spark-1")
    run: Any = site(host).hosts["spark-1"]
    (service,) = run.services
    container = Container(running, service.release, service.image)
    kept = {service.release: KeptRelease(1.0, service)}
    status = ServiceStatus(service.release, None, kept, container, {}, None)
    host.answers["status"] = HostStatus(1.0, None, None, (), {"qwen36": status})
    looks = (HostLoad(1.0, {"qwen36": {"running": count}}, (GB10,)) for count in (0, 0, 1, 2, 0))
    monkeypatch.setattr(questions, "current_load", lambda *_: next(looks))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    seen = facts_of(host, run, samples=15)
    assert (seen.gpu, seen.samples) == (GB10, (GB10, GB10))
    assert seen.running == ({"qwen36": service} if running else {})
    assert seen.planned == {"qwen36": service.release}


CELL = json.loads(cell().model_dump_json())


def test_a_result_is_a_file_named_by_host_service_and_utc_time(tmp_path: Path) -> None:
    berlin = NOON.astimezone(dt.timezone(dt.timedelta(hours=2)))
    path = save(tmp_path, result(when=berlin))
    assert path == tmp_path / "spark-1/qwen36/20260702T120000Z.json"
    assert json.loads(path.read_text())["schema"] == 1
    assert load(tmp_path) == ({("spark-1", "qwen36"): result()}, ())
    assert [file.suffix for file in path.parent.iterdir()] == [".json"]


_cells = st.builds(
    cell,
    category=st.sampled_from(["coding", "extraction-json"]),
    prompt_tokens=st.integers(0, 10**6),
    requests=st.integers(0, 10**6),
    ttft=st.none() | st.floats(0, 1e4),
    decode=st.none() | st.floats(0, 1e6),
    acceptance=st.none() | st.floats(0, 1),
    acceptance_length=st.none() | st.floats(1, 16),
)


@given(st.lists(_cells, max_size=4), st.datetimes(dt.datetime(1, 1, 3), timezones=st.timezones()))
def test_a_stored_result_is_read_back_unchanged(cells: list[Cell], when: dt.datetime) -> None:
    item = result(*cells, when=when)
    assert Result.model_validate_json(item.model_dump_json(by_alias=True)) == item
    assert item.when == when.astimezone(dt.UTC)


def test_a_second_result_of_one_second_does_not_replace_the_first_result(tmp_path: Path) -> None:
    path = save(tmp_path, result())
    with pytest.raises(UserError) as raised:
        save(tmp_path, result(cell(decode=1)))
    assert str(path) in str(raised.value)
    assert load(tmp_path)[0]["spark-1", "qwen36"] == result()


@cases("written", "message", more=[
    ({"cells": [{**CELL, "concurrency": 10**400}]}, "cells.0.concurrency"),
    ({"cells": [{**CELL, "measures": {"decode": float("inf")}}]}, "not valid JSON"),
    ({"cells": [{**CELL, "measures": {"decode": 1e10}}]}, "cells.0.measures.decode"),
    ({"cells": [{**CELL, "measures": {"decode": -1}}]}, "cells.0.measures.decode"),
])  # fmt: skip
def test_a_broken_file_is_named_and_other_files_are_read(
    tmp_path: Path, written: str | dict[str, Any], message: str
) -> None:
    good = save(tmp_path, result())
    bad = good.with_name("20260703T120000Z.json")
    whole = json.loads(good.read_text())
    bad.write_text(written if isinstance(written, str) else json.dumps({**whole, **written}))
    results, problems = load(tmp_path)
    assert results == {("spark-1", "qwen36"): result()}
    assert all(each.subject.place.startswith(str(bad)) and each.remedy for each in problems)
    assert message in " ".join(f"{each.subject} {each.observed}" for each in problems)


def test_keys_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    path = save(tmp_path, result())
    path.write_text(json.dumps({**json.loads(path.read_text()), "weather": "hot"}))
    assert load(tmp_path)[0]["spark-1", "qwen36"] == result()


def test_the_newest_result_is_used(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere") == ({}, ())
    later = result(when=NOON + dt.timedelta(days=1))
    for each in (later, result(), result(host="spark-2")):
        save(tmp_path, each)
    newest = {("spark-1", "qwen36"): later, ("spark-2", "qwen36"): result(host="spark-2")}
    assert load(tmp_path)[0] == newest


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", ""])
def test_a_name_cannot_point_outside_the_directory(name: str) -> None:
    with pytest.raises(ValidationError):
        result(host=name)
