"""An engine sleeps and wakes up by its own routes; the state of a failed engine is unknown."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sparkwright.host.lib.http import Server
from sparkwright.host.lib.nap import Nap, Step, enter, leave, sleeps

WEIGHTS, CACHE = Step("/wake_up?tags=weights"), Step("/wake_up?tags=kv_cache")
RELOAD = Step("/collective_rpc", "reload_weights")
LIGHT = Nap("/is_sleeping", (Step("/sleep?level=1"),), (Step("/wake_up"),))
DEEP = Nap("/is_sleeping", (Step("/sleep?level=2"),), (WEIGHTS, RELOAD, CACHE))


class Engine:
    """Fake of vLLM 0.24.0 in its developer mode, from captures (lab/gpu/sleep.py)."""

    def __init__(self, fails: str | None) -> None:
        self.asleep, self.asked, self.fails = False, list[tuple[str, bytes]](), fails

    def post(self, path: str, body: bytes) -> int:
        self.asked.append((path, body))
        if path == self.fails:
            return 500
        self.asleep = path.startswith("/sleep") or (self.asleep and path == WEIGHTS.path)
        return 200


@contextmanager
def _engine(fails: str | None = None) -> Iterator[tuple[Engine, Server]]:
    engine = Engine(fails)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, json.dumps({"is_sleeping": engine.asleep}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(engine.post(self.path, body), b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        yield engine, Server("127.0.0.1", http.server_address[1])
        http.shutdown()
        thread.join()


@pytest.mark.parametrize("nap", [LIGHT, DEEP])
def test_an_engine_sleeps_and_wakes_up_by_its_routes(nap: Nap) -> None:
    with _engine() as (engine, server):
        assert sleeps(server, nap.state) is False
        assert enter(server, nap)
        assert sleeps(server, nap.state) is True
        assert leave(server, nap)
    assert [path for path, _ in engine.asked] == [step.path for step in (*nap.sleep, *nap.wake)]
    bodies = [json.loads(body) for path, body in engine.asked if path == RELOAD.path]
    assert bodies == ([{"method": "reload_weights"}] if nap is DEEP else [])


@pytest.mark.parametrize("fails", ["/sleep?level=2", WEIGHTS.path, RELOAD.path, CACHE.path])
def test_no_step_follows_a_failed_step(fails: str) -> None:
    with _engine(fails) as (engine, server):
        assert not (enter(server, DEEP) and leave(server, DEEP))
        assert engine.asked[-1][0] == fails


def test_an_engine_that_is_gone_neither_sleeps_nor_wakes() -> None:
    gone = Server("127.0.0.1", 9)
    assert (sleeps(gone, LIGHT.state), enter(gone, LIGHT), leave(gone, LIGHT)) == (
        None,
        False,
        False,
    )
