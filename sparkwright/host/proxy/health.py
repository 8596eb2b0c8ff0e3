"""Report whether this host's services generate tokens, as the health that a proxy checks.

An engine's own /health shows only that its loop runs, and succeeds even if the engine hangs. This
program reports a service as healthy while its token counters rise or, without requests, while the
service answers an occasional request for one token. A busy service stays healthy: a check that
waits behind a long queue counts as failed only if the service generates no token in this time.

`health.py CONFIG` runs as `sparkwright-health.service`.
"""

import contextlib
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

from sparkwright.host.lib import documents, faults, homes, kinds, metrics, threads
from sparkwright.host.lib.http import Answer, Late, NoAnswer, Server, api_key
from sparkwright.host.lib.nap import sleeps
from sparkwright.host.lib.records import dataclass, field
from sparkwright.host.proxy.pool import MARK, HealthConfig, HealthService

#: Seconds without a token after which the program requests one.
_IDLE = 30.0
#: Seconds between two checks, and before an unreachable service is checked again.
_LOOK, _LOOK_AGAIN = 2.0, 0.5
#: Lasting states, with rarer checks: a sleeping engine logs every check.
_SLEEPS, _MAINTENANCE = "sleeps", "in maintenance"
_COUNTERS = (metrics.READ, metrics.GENERATED, metrics.CACHE)
#: Number of successive answers that may be late.
_LATE = 3
#: Errors: an unreachable server, a missing key, an invalid answer.
_WRONG = (NoAnswer, OSError, KeyError, ValueError, faults.Fault)


@dataclass(frozen=True)
class _Gate:
    """Fields of a release's smoke test that a check needs."""

    served_names: tuple[str, ...]
    routes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Release:
    """A release.json, whose whole record (``host/service.py``) imports this package."""

    gate: _Gate


class Service:
    """A service's server, and its health so far."""

    def __init__(self, config: HealthService, idle: float, names: Mapping[str, str]) -> None:
        self.config = config
        self._idle, self._names = idle, names
        self._progress: tuple[float, ...] = ()
        self._alive = 0.0
        self._late = 0
        self.well = False
        self.observed = "not checked yet"

    def watch(self) -> None:
        """Check the service in an endless loop, and print each change of its health."""
        reported = None
        while True:
            began = time.monotonic()
            self.look()
            if self.well:
                # Touch the file at each check: a quick engine may restart between two checks.
                Path(self.config.health).with_suffix(MARK).touch()
            if reported != self.well:
                reported = self.well
                state = "well" if self.well else "NOT well"
                print(f"{self.config.name}: {state}: {self.observed}", flush=True)
            pause = _LOOK if self.well or self.observed in (_SLEEPS, _MAINTENANCE) else _LOOK_AGAIN
            time.sleep(max(0.1, pause - (time.monotonic() - began)))

    def look(self) -> None:
        """Check the service once."""
        if homes.maintenance():
            # The host stays in maintenance after a boot, which clears HAProxy's own state.
            self._away(_MAINTENANCE)
            return
        engine = Server(self.config.address, self.config.port)
        if self.config.sleeps and sleeps(engine, self.config.sleeps):
            self._away(_SLEEPS)  # a sleeping engine has no weights to answer with
            return
        try:
            progress = self._count()
        except Late:
            # A server that reads a long prompt may be late; a missing server refuses at once.
            self._late += 1
            if self._late >= _LATE:
                self._away("does not answer in time")
            return
        except _WRONG as error:
            self._away(f"does not answer: {error}")
            return
        now = time.monotonic()
        self._late = 0
        if self._alive and progress != self._progress:
            self._alive, self.well, self.observed = now, True, "generates"
        self._progress = progress
        if not self.well or now - self._alive > self._idle:
            self._question()

    def _away(self, observed: str) -> None:
        self._progress, self._alive, self._late = (), 0.0, 0
        self.well, self.observed = False, observed

    def _question(self) -> None:
        began = time.monotonic()
        model, routes = self._running()
        kind = kinds.cheapest(routes)
        row = kinds.KINDS[kind]
        body = kinds.body(row.least or row.request, model)
        try:
            answer = self._call("POST", routes[kind], body, self.config.patience_seconds)
            if not row.least:
                kinds.judged(kind, answer)
            self.well, self.observed = True, "answers"
        except Late:
            moved = False
            with contextlib.suppress(*_WRONG):
                moved = self._count() != self._progress
            silent = f"no token within {time.monotonic() - began:.0f} s"
            self.well, self.observed = moved, "busy" if moved else silent
        except _WRONG as error:
            self.well, self.observed = False, f"does not generate: {error}"
        if self.well:
            self._alive = time.monotonic()

    def _running(self) -> tuple[str, dict[str, str]]:
        """Return the served name and the routes of the release that runs: after a rollback it can
        have another model than the configuration, and the engine refuses the other name.
        """
        path = Path(self.config.secrets).with_name("current") / "release.json"
        release = documents.record(_Release, path)
        gate = release.gate if release else _Gate((self.config.model,), self.config.routes)
        return gate.served_names[0], gate.routes or {"completion": "/v1/completions"}

    def _count(self) -> tuple[float, ...]:
        """Return the tokens so far and the cache's fill level, since a long prompt gives no token
        for minutes.
        """
        # Compare each engine separately: a fuller engine must not hide a working engine.
        samples = metrics.samples(self._call("GET", "/metrics", None, 5).text, self._names)
        return tuple(value for name, _, value in samples if name in _COUNTERS)

    def _call(self, method: str, path: str, body: object, timeout: float) -> Answer:
        """Send a request, and return a successful answer. Raises ValueError otherwise."""
        server = Server(self.config.address, self.config.port, api_key(self.config.secrets))
        answer = server.ask(method, path, body, timeout=timeout)
        if answer.status != 200:
            raise ValueError(f"{path}: HTTP {answer.status}: {answer.text[:200]}")
        return answer


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    #: Length of the queue of connections; a Unix socket refuses further connections.
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Print nothing about a connection that the client closed."""


def serve(service: Service, path: str) -> None:
    """Answer 200 while the service is healthy, otherwise 503 with the reason."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            text = service.observed.encode()
            self.send_response(200 if service.well else 503)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Log nothing: the proxy checks every two seconds."""

    server = _Server(path, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(path: str) -> None:
    """Watch every service forever."""
    if (config := documents.record(HealthConfig, path)) is None:
        raise SystemExit(f"{path} can't be read")
    services = [Service(each, _IDLE, config.metric_names) for each in config.services]
    for service in services:
        serve(service, service.config.health)
    # Keep the main thread alive: Python 3.12.0 to 3.12.2 can't start a thread for an answer after
    # the main thread's end.
    threads.at_once(Service.watch, services)
