"""The lock: its content is read back, missing pins are named, and its text is stable."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.plan.service import render_service
from sparkwright.resolve import lock as locks
from tests.tables import Tables
from tests.unit.builders import RTX, SPARK, plan, resolution

cases = Tables(__file__)


def _lock() -> locks.Lock:
    host = plan(SPARK)
    return locks.from_resolution(
        [host.references], resolution(host, architectures=("arm64", "amd64")), None
    )


def test_a_lock_is_read_back_unchanged(tmp_path: Path) -> None:
    host = plan(SPARK)
    result = resolution(host)
    file = tmp_path / "fleet.lock"
    file.write_text(locks.render_lock(locks.from_resolution([host.references], result, None)))
    lock = locks.read_lock(file)
    assert lock is not None
    again = locks.to_resolution([host.references], lock, "fleet.lock")
    assert again.models == result.models
    service = host.services[0]
    assert again.image(service.image).digest == result.image(service.image).digest
    assert render_service(host, service, again) == render_service(host, service, result)


def test_the_same_pins_give_the_same_bytes_in_any_order() -> None:
    lock = _lock()
    turned = locks.Lock(
        images=dict(reversed(lock.images.items())), models=dict(reversed(lock.models.items()))
    )
    assert locks.render_lock(turned) == locks.render_lock(lock)


def test_a_pin_is_kept_when_other_pins_are_added() -> None:
    spark, rtx = plan(SPARK), plan(RTX, host="rtx-1")
    (name,) = _lock().images
    kept = _lock()
    pinned = replace(kept.images[name], digest=f"sha256:{'01' * 32}")
    kept = kept.model_copy(update={"images": {name: pinned}})
    both = locks.from_resolution([spark.references, rtx.references], resolution(rtx), kept)
    assert both.images[name].digest == pinned.digest


def test_unlocked_references_are_named_with_the_remedy() -> None:
    empty = locks.Lock(images={}, models={})
    with pytest.raises(UserError) as raised:
        locks.to_resolution([plan(SPARK).references], empty, "fleet.lock")
    problems = raised.value.findings
    assert {problem.observed for problem in problems} == {
        "ghcr.io/aeon-7/aeon-vllm-ultimate:2026-08-17-v0.27.1-slim is not locked",
        "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@main is not locked",
        "z-lab/Qwen3.6-35B-A3B-DFlash@main is not locked",
    }
    assert all("sparkwright lock" in problem.remedy for problem in problems)


def test_unused_pins_are_named() -> None:
    gemma = plan({"s": {"recipe": "gemma4-26b-a4b-dflash-production"}})
    assert locks.unused([gemma.references], _lock()) == [
        "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@main",
        "z-lab/Qwen3.6-35B-A3B-DFlash@main",
    ]


@cases("text", "reason")
def test_a_file_that_is_not_a_lock_is_reported_with_its_location(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "fleet.lock"
    file.write_text(text)
    with pytest.raises(UserError) as raised:
        locks.read_lock(file)
    assert reason in raised.value.findings[0].observed
    assert raised.value.findings[0].subject.place.startswith(str(file))
