"""Routes that answer without the key: closed in the plan, and probed from outside."""

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import pytest

from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.smoke import outside
from sparkwright.checks.smoke.outside import Entrance, entrances, look
from sparkwright.engines import engine, inference_routes
from sparkwright.host.service import CheckResult
from sparkwright.proxy.pools import planned_pools
from tests.host.serving import Handler, free_port, listening
from tests.unit.builders import SPARK, catalog, plan

HERE = "127.0.0.1"


@contextmanager
def server(
    status: dict[str, int], others: int = 401, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[str]]]:
    """A server with one answer for these paths and another answer for all other paths, and the
    server's requests.
    """
    asked: list[str] = []

    class Service(Handler):
        def do_GET(self) -> None:
            self.body()
            asked.append(f"{self.command} {self.path} {self.headers.get('Authorization', '-')}")
            self.reply(status.get(self.path, others))

        do_POST = do_GET

    with listening(Service, HERE, tls=tls) as port:
        yield port, asked


def _looked(port: int | None, inside: tuple[int, ...] = (), **entrance: Any) -> CheckResult:
    """Result of the test of a service's open routes."""
    (result,) = look(
        [Entrance("qwen36", entrance.pop("bind", "*"), port, inside, **entrance)], HERE
    )
    assert result.result is not None
    return result.result


def test_every_route_is_tested_without_a_key_and_with_a_wrong_key() -> None:
    with server({}) as (port, asked):
        assert _looked(port, (free_port(),), bind="0.0.0.0").ok
    arguments = [line.split(maxsplit=2) for line in asked]
    for method, path in inference_routes():
        keys = [key for how, where, key in arguments if (how, where) == (method, path)]
        assert len(keys) == 2
        assert "-" in keys
        assert sum(key.startswith("Bearer sk-") for key in keys) == 1


def test_an_https_service_is_tested_over_https(tmp_path: Path) -> None:
    arguments = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=spark-1"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "crt")]
    subprocess.run([*arguments, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with server({"/invocations": 200}, tls=context) as (port, _):
        detail = _looked(port, https=True).detail
    assert detail.startswith("POST /invocations answers HTTP 200 without the key")
    assert detail.count("answers") == 2


def test_an_open_route_fails_the_service() -> None:
    with server({"/invocations": 200, "/tokenize": 422}) as (port, _):
        result = _looked(port)
    assert not result.ok
    for name in (
        "POST /invocations answers HTTP 200 without the key",
        "POST /invocations answers HTTP 200 with a wrong key",
        "POST /tokenize answers HTTP 422 without the key",
    ):
        assert name in result.detail
    assert "/v1/completions" not in result.detail


def test_an_internal_port_that_takes_connections_fails_the_service() -> None:
    with server({}) as (port, _), server({}) as (inner, _):
        result = _looked(port, (inner,))
    assert f"port {inner} accepts connections" in result.detail
    assert not result.ok


def test_an_unreachable_port_is_a_note_and_no_failure() -> None:
    entrance = Entrance("qwen36", "*", free_port(), (free_port(),))
    for address, note in ((HERE, "does not answer this machine"), (None, "through a tunnel")):
        (result,) = look([entrance], address)
        assert result.result is None
        assert note in result.note


def test_an_unreachable_loopback_service_passes() -> None:
    assert _looked(None, (free_port(),), bind=HERE).ok


@pytest.mark.parametrize("text", [b"H", b"X" * 60_000 + b"\x1b[2J\n"])
def test_a_host_that_trickles_answers_or_lacks_http_does_not_block_the_run(
    monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(outside, "_ALL", 1.0)
    over = threading.Event()

    class Trickle(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while not over.wait(0.1):
                    self.wfile.write(text)

    with listening(Trickle, HERE) as port:
        began = time.monotonic()
        result = _looked(port)
        took = time.monotonic() - began
        over.set()
    assert took < 4
    assert not result.ok
    assert "XX" not in result.detail


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
def test_a_reachable_service_without_a_proxy_is_an_error_with_its_open_routes(bind: str) -> None:
    (result,) = _broken(proxy=False, bind=bind)
    assert result.severity == "error"
    for route in ("/invocations", "/tokenize", "/metrics", f"{bind}:8000"):
        assert route in result.observed
    (silenced,) = _broken(proxy=False, bind=bind, silenced={"open-routes": "a network of my own"})
    assert silenced.silenced == "a network of my own"


def test_the_tested_routes_exist_in_vllm_and_are_open_despite_its_key() -> None:
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
        # The rule is silenced: every run reports that the service is open.
        ({"proxy": False, "bind": "0.0.0.0"}, []),
    ],
)
def test_smoke_tests_every_reachable_address(
    settings: dict[str, Any], expected: list[Entrance]
) -> None:
    assert list(entrances(plan(_service(**settings)))) == expected


def test_smoke_tests_the_address_for_all_models() -> None:
    pool = plan({}, address={"port": 8080})
    assert entrances(pool) == (Entrance("the address of all models", "*", 8080),)
