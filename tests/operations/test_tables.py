"""Operations by tables: state of a host, arguments, and results."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright import operations
from sparkwright.checks.service.watch_plan import SERVICE, TIMER, watch_of
from sparkwright.host.fetch.request import ImageBuild
from sparkwright.host.lib.records import decode
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.host.proxy.pool import HEALTH_UNIT, UNIT
from sparkwright.operations import files, gpu, images, models, proxies, watch
from tests.operations.harness import Case, check, ended, fake, run
from tests.operations.sites import BEHIND, host_run, proxied, spark, written
from tests.tables import merged
from tests.unit.builders import COMMIT, PLATFORM, plan, probe, wanted

pytestmark = pytest.mark.usefixtures("libraries")

FOLDER = Path(__file__).parent
MODEL, IMAGE = f"/opt/models/AEON-7--Qwen3.6/{COMMIT}", "ghcr.io/me/vllm:sha256-abab"
CHANGES: dict[str, Any] = yaml.safe_load((FOLDER / "changes.yaml").read_text())
CHECKS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "checks.yaml").read_text())


DESIRED = wanted(plan())
WATCH = watch_of(DESIRED.plan, DESIRED.services)
WATCH_FILES = watch.files_of(WATCH)
PROXIED = host_run(spark(), BEHIND)
PROXY, PROXY_FILES = PROXIED.proxies, PROXIED.proxy_files

VALUES: dict[str, Any] = {
    "$WATCH": WATCH,
    "$WATCH_FILES": WATCH_FILES,
    "$WATCH_REQUEST": watch.request_of(WATCH_FILES),
    "$NO_WATCH_REQUEST": watch.request_of({}),
    "$WATCH_IN_PLACE": {
        "files": written(WATCH_FILES),
        "units": {TIMER: {"ActiveState": "active", "UnitFileState": "enabled"}},
        "unit_files": [SERVICE, TIMER],
    },
    "$WATCH_WRITTEN": [*(f"write {path}" for path in WATCH_FILES), f"start {TIMER}"],
    "$YES": lambda: True,
    "$PROXY": PROXY,
    "$PROXY_FILES": PROXY_FILES,
    "$PROXY_REQUEST": proxies.request_of(PROXY, PROXY_FILES),
    "$PROXY_WRITTEN": [
        *(f"write {path}" for path in PROXY_FILES),
        f"start {UNIT}",
        f"start {HEALTH_UNIT}",
    ],
    "$NO_PROXY_REQUEST": proxies.request_of(None, {}),
    "$PROXY_IN_PLACE": proxied(PROXIED),
    "$ENDS": ended,
    "$PLATFORMS": {"arm64": PLATFORM},
    "$BUILD": lambda: ImageBuild("base", {}),
    "$PROVED": ProofRequest(models=(ModelAt(MODEL, COMMIT),), images=(IMAGE,)),
    "$WATCHED": {
        models.watched_job(MODEL, "/opt/models", "/opt/sparkwright"): "Qwen3.6",
        images.watched_job(IMAGE, "/opt/sparkwright"): "image v1",
    },
}


def _read(value: Any) -> Any:
    """Values and records that a table names."""
    if isinstance(value, str):
        return VALUES.get(value, value)
    if isinstance(value, list):
        return [_read(each) for each in value]
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in operations.__all__:
            ((name, arguments),) = value.items()
            return getattr(operations, name)(*arguments)
        return {key: _read(each) for key, each in value.items()}
    return value


def _operation(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"sparkwright.operations.{module}"), function)


@pytest.mark.parametrize(
    ("name", "title"),
    [(name, title) for name, table in CHANGES.items() for title in table["cases"]],
)
def test_each_operation_reports_and_makes_its_changes(name: str, title: str) -> None:
    table = CHANGES[name]
    given = {**_read({**table, **table["cases"][title]})}
    arguments = {**_read(table.get("arguments", {})), **given.get("arguments", {})}
    would, asks = tuple(given.get("would", ())), given.get("asks", {})
    case = Case(
        title, merged(given.get("there", {}), given.get("seen", {})), arguments,
        given.get("noop"), would, tuple(asks.items()),
        given.get("answers") or {program: list(would) for program in asks},
        tuple(given["done"]) if "done" in given else None,
    )  # fmt: skip
    request = given["request"]
    if isinstance(request, dict):
        request = decode(ObservationRequest, request)
    check(_operation(name), case, probe(**case.seen), request)


@pytest.mark.parametrize("table", CHECKS, ids=lambda table: table.get("failure", table.get("noop")))
def test_an_operation_that_checks_makes_no_change(table: dict[str, Any]) -> None:
    operation, arguments = _operation(table["operation"]), table.get("arguments", {})
    for execute in (False, True):
        ran = run(fake(probe(**table.get("seen", {}))), operation, execute=execute, **arguments)
        assert (ran.host.asked, ran.memory.changes) == ([], [])
        if "noop" in table:
            assert (ran.host.noops, ran.commands, ran.memory.failure) == ([table["noop"]], [], None)
            continue
        assert ran.host.noops == []
        assert (len(ran.commands), ran.host.state.failed_hosts) == (
            (1, set()) if execute else (0, {ran.host})
        )
        assert any("remedy:" in line for line in ran.host.lines)
        assert (ran.memory.failure or "").startswith(table["failure"])


def test_a_diff_shows_files_but_no_secret_and_no_program() -> None:
    texts = {
        "/etc/a": ("a\n", 0o644), "/etc/key": ("sk-secret\n", 0o600),
        "/srv/x.py": ("import x\n", 0o644),
    }  # fmt: skip
    host = fake(probe(), ObservationRequest(files=tuple(texts)))
    host.state.config.DIFF = True
    host.answers["observe"] = probe(texts={"/etc/a": "b\n"})
    run(host, files.present, texts)
    assert host.request("observe")["texts"] == ["/etc/a"]
    assert host.lines == [
        "Will change /etc/a", "    @@ -1 +1 @@", "    -b", "    +a",
        *(f"would write {path}" for path in texts),
    ]  # fmt: skip


NO_DRIVER = (
    'a container does not see the GPU: could not select device driver "" with capabilities: [[gpu]]'
)


@pytest.mark.parametrize(
    ("proof", "failure"),
    [
        (["vllm:a: no GPU: run this", "vllm:b: hangs"], "vllm:a: no GPU: run this; vllm:b: hangs"),
        ([NO_DRIVER], f"{NO_DRIVER} (Docker has no driver for GPUs: nvidia-container-toolkit"),
    ],
)  # fmt: skip
def test_a_gpu_that_no_container_sees_fails_the_host(proof: list[str], failure: str) -> None:
    host = fake(probe(), proof=proof)
    ran = run(host, gpu.seen_in_containers, execute=True, images=["vllm:a", "vllm:b"])
    assert not ran.well
    assert str(ran.memory.failure).startswith(failure)
    cure = "sudo apt install nvidia-container-toolkit"
    assert (cure in str(ran.memory.failure)) == (proof == [NO_DRIVER])
    assert (ran.memory.changes, ran.memory.stale) == ([], False)
