"""Questions of the command line: what hosts are asked, and how answers get to who asked."""

from typing import Any

from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.verify_models import Verified
from sparkwright.run import changes, questions
from sparkwright.run.state import HostRun
from tests.operations.harness import FakeHost, run
from tests.operations.sites import site, spark

MODEL = "/opt/models/AEON-7--Qwen3.6-35B-A3B-heretic-NVFP4/cccccccccccccccccccccccccccccccccccccccc"

DRAFTER = "/opt/models/z-lab--Qwen3.6-35B-A3B-DFlash/cccccccccccccccccccccccccccccccccccccccc"


def _single(**answers: Any) -> tuple[FakeHost, HostRun]:
    host = spark(**answers)
    return host, site(host, spark("spark-2")).hosts["spark-1"]


def test_what_a_plan_needs_of_the_disk() -> None:
    _, item = _single()
    request = questions.disk_usage_request(item)
    assert isinstance(request, DiskUsageRequest)
    assert MODEL in request.planned
    assert item.desired.images[0].name in request.planned
    assert item.desired.images[0].store in request.planned
    assert (request.keep_releases, request.prune) == (item.settings.keep_releases, False)


def test_models_are_hashed_again() -> None:
    well, damaged = Verified(3, 2 * 10**9, 4.0, ()), Verified(3, 0, 0.0, ("a: another sha256",))
    sizes = "3 files, 2.00 GB in 4.0 s (0.50 GB/s), 0 wrong"
    for other, failure in ((well, None), (damaged, f"{DRAFTER}: a: another sha256")):
        host, item = _single(verify_models={MODEL: well, DRAFTER: other})
        ran = run(host, changes._hashed, item, execute=True)
        assert set(host.request("verify-models")) == {MODEL, DRAFTER}
        assert host.lines[0] == f"{MODEL}: {sizes}"
        remedy = "deploy again: what is wrong is fetched anew, and the rest is kept"
        assert (f"{DRAFTER}: {sizes}" in host.lines, remedy in host.lines) == (
            failure is None, failure is not None,
        )  # fmt: skip
        assert (ran.memory.failure, ran.well) == (failure, failure is None)
        assert ran.memory.changes == []
