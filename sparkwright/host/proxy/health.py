"""Says whether the services of this host generate: the health that a door goes by.

vLLM's own /health says only that the engine's loop runs; a wedged one goes on saying so. Here a
service is well while its counters of tokens rise, or, when nobody asks it anything, while a
question of one token is answered now and then. Busy is not ill: a question that waits behind a
long queue counts only when no token comes out meanwhile.

`health.py CONFIG` runs as `sparkwright-health.service`. Config: {"services": [{"name", "port": of
vLLM, "health_port", "secrets": file with the key, "model": served name, "patience_seconds"}],
"idle_seconds": between two questions, "state": file that tells others}.
Standard library only; Python 3.10.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Seconds between two looks, and before a service that is away is looked at again.
_LOOK = 2.0
_COUNTERS = (
    *("vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
    "vllm:kv_cache_usage_perc",
)
#: So many answers in a row may come late.
_LATE = 3


class Service:
    """One vLLM server, and what is known of it."""

    def __init__(self, config: dict[str, Any], idle: float) -> None:
        self._config = config
        self._idle = idle
        self._progress: tuple[float, ...] = ()
        self._alive = 0.0
        self._late = 0
        self.well = False
        self.said = "not asked yet"

    @property
    def name(self) -> str:
        """The service's name."""
        return str(self._config["name"])

    def watch(self) -> None:
        """Look for ever."""
        while True:
            began = time.monotonic()
            self.look()
            time.sleep(max(0.1, _LOOK - (time.monotonic() - began)))

    def look(self) -> None:
        """Look once."""
        try:
            progress = self._count()
        except TimeoutError:
            # A server that reads a long prompt may be late; one that is gone refuses at once.
            self._late += 1
            if self._late < _LATE:
                return
            self._away("does not answer in time")
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._away(f"does not answer: {error or type(error).__name__}")
            return
        now = time.monotonic()
        self._late = 0
        if self._alive and progress != self._progress:
            self._alive, self.well, self.said = now, True, "generates"
        self._progress = progress
        if not self.well or now - self._alive > self._idle:
            self._question()

    def _away(self, said: str) -> None:
        self._progress, self._alive, self._late = (), 0.0, 0
        self.well, self.said = False, said

    def _question(self) -> None:
        asked = time.monotonic()
        before = self._progress
        body = {"model": self._config["model"], "prompt": "1 2 3", "max_tokens": 1}
        try:
            status, said = self._call(
                "POST", "/v1/completions", body, float(self._config["patience_seconds"])
            )
            if status != 200:
                raise ValueError(f"HTTP {status}: {said[:200].decode(errors='replace')}")
        except TimeoutError:
            if self._moved(before):
                self._alive, self.well, self.said = time.monotonic(), True, "busy"
            else:
                self.well, self.said = False, f"no token within {time.monotonic() - asked:.0f} s"
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.well, self.said = False, f"does not generate: {error or type(error).__name__}"
        else:
            self._alive, self.well, self.said = time.monotonic(), True, "answers"

    def _moved(self, before: tuple[float, ...]) -> bool:
        try:
            return self._count() != before
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def _count(self) -> tuple[float, ...]:
        """Tokens so far and, since a long prompt gives none for minutes, how full the cache is."""
        status, body = self._call("GET", "/metrics", None, 5)
        if status != 200:
            raise ValueError(f"/metrics: HTTP {status}")
        return tuple(
            float(line.rpartition(" ")[2])
            for line in body.decode(errors="replace").splitlines()
            if line.startswith(_COUNTERS)
        )

    def _call(self, method: str, path: str, body: Any, timeout: float) -> tuple[int, bytes]:
        text = Path(self._config["secrets"]).read_text()
        key = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)["VLLM_API_KEY"]
        connection = http.client.HTTPConnection("127.0.0.1", self._config["port"], timeout=timeout)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def serve(service: Service, port: int) -> None:
    """Answer 200 while the service is well, 503 with the reason while it is not."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            text = service.said.encode()
            self.send_response(200 if service.well else 503)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Asked every two seconds: nothing to tell."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(path: str) -> int:
    """Watch every service, and write down what changes."""
    config = json.loads(Path(path).read_text())
    services = [Service(one, float(config["idle_seconds"])) for one in config["services"]]
    for service, one in zip(services, config["services"], strict=True):
        serve(service, int(one["health_port"]))
        threading.Thread(target=service.watch, daemon=True).start()
    told: dict[str, Any] = {}
    while True:
        now = {service.name: [service.well, service.said] for service in services}
        if now != told:
            for name, (well, said) in now.items():
                if told.get(name, [None])[0] != well:
                    print(f"{name}: {'well' if well else 'NOT well'}: {said}", flush=True)
            told = now
            temporary = Path(config["state"] + ".new")
            temporary.write_text(json.dumps({"at": time.time(), "services": now}))
            temporary.replace(config["state"])
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
