"""Each check of the short test fails for its own reason, against the fake vLLM with a fault."""

import json
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sparkwright.engines import metric_names
from sparkwright.engines.vllm.engine import ENGINE
from sparkwright.host import doctor
from sparkwright.host.lib import files, http, systemd
from sparkwright.host.lib.faults import Fault
from sparkwright.host.lib.kinds import KINDS
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthService
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.host.smoke.client import Client
from tests.host.lab.fake_server import KEY, NGRAM, Server, launched, make_model
from tests.tables import Tables
from tests.unit.builders import kept_service

cases = Tables(__file__)

WORDS = ("--speculative-config", NGRAM)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model")


def _fault(name: str) -> dict[str, str]:
    """The environment of a fault; without a name the server requires no key."""
    return {"FAKE_VLLM_FAULT": name} if name else {"VLLM_API_KEY": ""}


def ask(server: Server, folder: Path, **changes: Any) -> SmokeAnswer:
    (folder / "secrets.env").write_text(f"VLLM_API_KEY={KEY}\n")
    request = SmokeRequest(
        name="qwen36", unit="sparkwright-none.service", address="127.0.0.1", port=server.port,
        secrets=str(folder / "secrets.env"), served_names=("tiny", "tiny2"), boot_seconds=2,
        first_answer_seconds=5, warm_ups=1, speculates=True, metric_names=metric_names(),
    )  # fmt: skip
    return check.run(replace(request, **changes))


def test_a_healthy_service_passes_directly_and_through_its_proxy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with launched(model, *WORDS) as server:
        answer = ask(server, tmp_path, proxy=("127.0.0.1", server.port), adapters=("tiny2",))
        monkeypatch.setattr(check, "_PROXY_SECONDS", 0)
        closed = ask(server, tmp_path, proxy=("127.0.0.1", 9)).checks[-1]
        public = ask(server, tmp_path, key_probe="/metrics").checks[-1]
    assert [item.name for item in answer.checks] == [
        *("health", "models", "key", "generation", "warm-up 1", "adapters", "speculation", "proxy")
    ]
    assert all(item.ok for item in answer.checks)
    assert (public.name, public.ok) == ("key", False)
    assert "/metrics answers HTTP 200 without the key" in public.detail
    assert "drafted tokens accepted (" in answer.checks[-2].detail
    assert (closed.name, closed.ok) == ("proxy", False)
    assert "port 9 does not answer: [Errno 111] Connection refused" in closed.detail


def test_the_cause_of_a_crash_is_searched_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looks = count()
    restarts = iter([*"000", *"1111"])
    waiting = {"ActiveState": "activating", "SubState": "auto-restart"}
    monkeypatch.setattr(systemd, "unit", lambda _: waiting | {"NRestarts": next(restarts, "1")})
    clock = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (tmp_path / "s").write_text("VLLM_API_KEY=a")
    request = SmokeRequest("a", "a.service", "127.0.0.1", 9, str(tmp_path / "s"), ("a",), 20, 5)
    with pytest.raises(Fault, match="not healthy after"):
        check.health(Client(request, 5), lasting=lambda: "" * next(looks))
    assert next(looks) == 2


def test_an_engine_is_healthy_once_its_proxy_may_connect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The container opens the socket up to a second after the engine has made it."""
    (tmp_path / "s").write_text("VLLM_API_KEY=a")
    (tmp_path / "http.sock").touch(0o600)
    monkeypatch.setattr(http.Server, "get", lambda *_: http.Answer(200, b""))
    request = SmokeRequest("a", "", f"{tmp_path}/http.sock", 0, str(tmp_path / "s"), ("a",), 0, 5)
    with pytest.raises(Fault, match="the socket is closed"):
        check.health(Client(request, 5))
    (tmp_path / "http.sock").chmod(0o666)
    assert check.health(Client(request, 5)) == "200"


@cases("fault", "name", "message")
def test_a_fault_fails_the_check_of_its_subject(
    model: Path, tmp_path: Path, fault: str, name: str, message: str
) -> None:
    with launched(model, *WORDS, healthy=True, **_fault(fault)) as server:
        last = ask(server, tmp_path, first_answer_seconds=2).checks[-1]
        well = ask(server, tmp_path, speculates=False, first_answer_seconds=2).checks[-1]
    assert (last.name, last.ok) == (name, False)
    assert message in last.detail
    # Speculation is not checked for a recipe without speculation.
    assert well.ok == (name == "speculation")


def test_a_proxy_without_access_control_fails(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_PROXY_SECONDS", 0)
    monkeypatch.setattr(check, "key_required", lambda _: "not asked")
    with launched(model, *WORDS, healthy=True, **_fault("")) as server:
        last = ask(server, tmp_path, proxy=("127.0.0.1", server.port)).checks[-1]
    assert "HTTP 200 with the key and 200 without it" in last.detail


@cases("task", "architecture", "fault", "message")
def test_a_model_gets_a_request_of_its_kind_and_its_answer_is_judged(
    task: str,
    architecture: str,
    fault: str,
    message: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_ANSWER", 2)
    config_file = {"model_type": "qwen3", "hidden_size": 48, "architectures": [architecture]}
    (model / "config.json").write_text(json.dumps(config_file))
    routes = ENGINE.kinds({"runner": task} if task == "pooling" else {}, task)
    arguments = ("--runner", "pooling") if task == "pooling" else ()
    with launched(model, *arguments, FAKE_VLLM_FAULT=fault) as server:
        few = {"first_answer_seconds": 2, "warm_ups": 0, "speculates": False}
        answer = ask(server, tmp_path, routes=routes, model_files=str(model), **few)
        status = server.ask("POST", "/v1/chat/completions", {})[0]
        key = str(tmp_path / "secrets.env")
        config = HealthService("a", "127.0.0.1", key, "tiny", 2, server.port, routes=routes)
        service = health.Service(config, 30.0, {})
        service.look()
        home = tmp_path / "services/a"
        own = {"routes": routes, "model_files": str(model), "served_names": ("tiny", "tiny2")}
        record = kept_service("r", "a", tmp_path, port=server.port, **own).record
        files.write(home / "releases/r/release.json", record, 0o640)
        files.write(home / "secrets.env", Path(key).read_text(), 0o600)
        files.point(home / "current", "releases/r")
        faults = "; ".join(doctor.faults(home, ()))
    assert message in "; ".join(item.detail for item in answer.checks[1:])
    assert [item.name for item in answer.checks][3:] == [
        kind for kind in KINDS if kind in routes
    ] or fault
    assert all(item.ok for item in answer.checks) == (not fault)
    # The proxy's health check sends the same request as the gate, if the request is cheap.
    judged = fault in ("wedge", "deaf", "silent-speech", "blank-picture")
    assert (status, service.well) == (404, not judged)
    assert message in faults if fault else not faults
