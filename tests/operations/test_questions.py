"""Questions of the command line: what hosts are asked, and how answers get to who asked."""

from __future__ import annotations

from typing import Any

from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.proxy.pool import HEALTH_UNIT
from sparkwright.host.status import HostStatus
from sparkwright.host.verify_models import Verified
from sparkwright.proxy.haproxy import UNIT
from sparkwright.run import changes, questions
from sparkwright.run.state import HostRun
from tests.operations.harness import FakeHost, run
from tests.operations.sites import running, site, spark, written
from tests.unit.builders import probe

MODEL = "/opt/models/AEON-7--Qwen3.6-35B-A3B-heretic-NVFP4/cccccccccccccccccccccccccccccccccccccccc"

DRAFTER = "/opt/models/z-lab--Qwen3.6-35B-A3B-DFlash/cccccccccccccccccccccccccccccccccccccccc"


def _one(**answers: Any) -> tuple[FakeHost, HostRun]:
    host = spark(**answers)
    return host, site(host, spark("spark-2")).hosts["spark-1"]


def _hashed(host: FakeHost, one: HostRun) -> list[str]:
    return questions.hashed_again(host, one)  # type: ignore[arg-type]


def test_models_are_hashed_again_and_what_is_wrong_is_told() -> None:
    well = Verified(3, 2 * 10**9, 4.0, ())
    host, one = _one(verify_models={MODEL: well, DRAFTER: well})
    assert _hashed(host, one) == []
    assert set(host.request("verify-models")) == {MODEL, DRAFTER}
    assert host.lines == [
        f"{path}: 3 files, 2.00 GB in 4.0 s (0.50 GB/s), 0 wrong" for path in (MODEL, DRAFTER)
    ]
    wrong = Verified(3, 0, 0.0, ("a: another sha256",))
    host, one = _one(verify_models={MODEL: wrong, DRAFTER: well})
    assert _hashed(host, one) == [
        f"{MODEL}: a: another sha256",
        "deploy again: what is wrong is fetched anew, and the rest is kept",
    ]


def test_what_a_plan_needs_of_the_disk() -> None:
    _, one = _one()
    request = questions.disk_usage_request(one)
    assert isinstance(request, DiskUsageRequest)
    assert MODEL in request.planned
    assert one.desired.images[0].name in request.planned
    assert one.desired.images[0].store in request.planned
    assert (request.keep_releases, request.prune) == (one.settings.keep_releases, False)


def test_status_is_beside_what_is_planned() -> None:
    status = HostStatus(1000.0, None, None, (), {})
    host, one = _one(status=status)
    there = running(one)
    there["units"] |= {unit: {"ActiveState": "active"} for unit in (UNIT, HEALTH_UNIT)}
    host.answers["observe"] = probe(**there, files=written(one.proxy_files), unit_files=[UNIT])
    found = questions.deployment(host, one).planned["qwen36"]  # type: ignore[arg-type]
    assert host.programs == ["observe", "status"]
    assert found.drift == ()
    assert found.release == one.services[0].release
    host.answers["observe"] = probe(**running(one, "0123456789ab"))
    found = questions.deployment(host, one).planned["qwen36"]  # type: ignore[arg-type]
    assert found.drift[0] == f"release {found.release} after 0123456789ab"


def test_a_model_that_is_damaged_fails_the_host() -> None:
    well, damaged = Verified(3, 2 * 10**9, 4.0, ()), Verified(3, 0, 0.0, ("a: another sha256",))
    for other, failure in ((well, None), (damaged, f"{DRAFTER}: a: another sha256")):
        host, one = _one(verify_models={MODEL: well, DRAFTER: other})
        ran = run(host, changes._hashed, one, execute=True)
        assert (ran.memory.failure, ran.well) == (failure, failure is None)
        assert ran.memory.changes == []
