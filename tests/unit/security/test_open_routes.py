"""Nobody is let near vLLM without a key: by default, and by a rule where one asks for it."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.smoke.outside import Entrance, entrances
from sparkwright.engines import engine
from sparkwright.proxy.pools import planned_pools
from tests.unit.builders import SPARK, catalog, plan

ROUTES = engine("vllm").routes
CAPTURES = Path(__file__).parents[2] / "fixtures/vllm/0.24.0"


def _service(**settings: Any) -> dict[str, Any]:
    return {"qwen36": {**SPARK["qwen36"], **settings}}


def _broken(**settings: Any) -> list[Any]:
    host = plan(_service(**settings))
    result = check_host(host, catalog(), assumed_hardware(host))
    return [item for item in result if item.id == "open-routes"]


def test_vllm_itself_listens_on_no_port_by_default() -> None:
    (service,) = plan().services
    assert service.socket == "/run/sparkwright-engines/qwen36/http.sock"
    assert (service.bind, service.port) == ("0.0.0.0", 8000)
    (service,) = plan(_service(proxy=False)).services
    assert (service.socket, service.bind, service.port) == (None, "127.0.0.1", 8000)
    assert _broken() == _broken(proxy=False) == _broken(proxy=False, bind="::1") == []


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.21", "spark-1"])
def test_no_proxy_and_a_bind_for_others_is_an_error_that_says_what_is_open(bind: str) -> None:
    (result,) = _broken(proxy=False, bind=bind)
    assert result.severity == "error"
    for route in ("/invocations", "/tokenize", "/metrics", f"{bind}:8000"):
        assert route in result.observed
    (silenced,) = _broken(proxy=False, bind=bind, silenced={"open-routes": "a network of my own"})
    assert silenced.silenced == "a network of my own"


def test_the_routes_are_vllms_own_and_its_key_leaves_them_open() -> None:
    listed = {
        tuple(line.split())
        for line in (CAPTURES / "routes.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    assert set(ROUTES.inference) <= listed
    answers = [line.split() for line in (CAPTURES / "apikey_matrix.txt").read_text().splitlines()]
    open_ = {path for _, path, without, *_ in answers if without not in ("nokey=401", "nokey=404")}
    asked = {path for _, path in ROUTES.inference} & {path for _, path, *_ in answers}
    assert set(ROUTES.open) & asked == open_ & asked
    assert {"/invocations", "/generative_scoring", "/tokenize", "/detokenize"} <= set(ROUTES.open)


@pytest.mark.parametrize("settings", [{"proxy": False}, {"bind": "127.0.0.1"}])
def test_no_pool_has_a_service_that_only_its_host_reaches(settings: dict[str, Any]) -> None:
    assert planned_pools([plan(_service(**settings))]) == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [Entrance("qwen36", "0.0.0.0", 8000)]),
        ({"bind": "10.0.0.5"}, [Entrance("qwen36", "10.0.0.5", 8000)]),
        ({"bind": "127.0.0.1"}, [Entrance("qwen36", "127.0.0.1", None, (8000,))]),
        ({"proxy": False}, [Entrance("qwen36", "127.0.0.1", None, (8000,))]),
        # Silenced: that it is open is said in every run.
        ({"proxy": False, "bind": "0.0.0.0"}, []),
    ],
)
def test_smoke_asks_wherever_others_come_near(
    settings: dict[str, Any], expected: list[Entrance]
) -> None:
    assert list(entrances(plan(_service(**settings)))) == expected


def test_smoke_asks_at_the_address_for_all_models_too() -> None:
    pool = plan({}, address={"port": 8080})
    assert entrances(pool) == (Entrance("the address of all models", "*", 8080),)
