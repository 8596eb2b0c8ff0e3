"""A running service as a benchmark sees it: queried over HTTP from the controller."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

from sparkwright.config.secrets import Secret
from sparkwright.engines import DEFAULT, engine
from sparkwright.findings.user_error import Messages, Problems, UserError, mistake
from sparkwright.host.lib import model_list

_SECONDS = 10.0
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Service:
    """A service that answers.

    Attributes:
        url: ``http://host:port``.
        model: the name in requests.
        context: tokens that prompt and answer may have together; None where it does not say.
        ca: file by which https is verified; None for the public CAs.
    """

    url: str
    model: str
    key: Secret
    context: int | None = None
    ca: str | None = None
    engine: str = DEFAULT

    def send(self, method: str, path: str, *, key: bool = True, **body: Any) -> requests.Response:
        """The answer to a request, with the key or without."""
        headers = {"Authorization": f"Bearer {self.key.value}"} if key else {}
        return requests.request(
            method, f"{self.url}{path}", headers=headers, timeout=_SECONDS, verify=self.ca or True,
            **body,
        )  # fmt: skip

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer. Raises UserError when there is none, or the key is refused."""
        try:
            answer = self.send(method, path, json=body)
            if answer.status_code != 401:
                answer.raise_for_status()
                return answer.json()
            raise _MESSAGES.refusal("key-refused", answer.url)
        except (requests.RequestException, ValueError) as error:
            raise self._silent(path, error) from None

    def has(self, path: str, body: Any) -> bool:
        """Whether its server has a route. Raises UserError without an answer."""
        try:
            return self.send("POST", path, json=body).status_code != 404
        except requests.RequestException as error:
            raise self._silent(path, error) from None

    def _silent(self, path: str, error: Exception) -> UserError:
        reason = str(error).splitlines()[0][:160]
        return _MESSAGES.refusal("no-answer", f"{self.url}{path}", error=reason)

    def tokens(self, text: str) -> int:
        """How many tokens the engine makes of a text. Raises UserError as ``ask``."""
        probes = engine(self.engine).probes
        body = {"model": self.model, probes.tokenized: text, "add_special_tokens": False}
        return len(self.ask("POST", probes.tokenizer, body)["tokens"])

    def metrics(self, *, key: bool) -> tuple[int, bytes]:
        """Status and text of its metrics; 502 without an answer."""
        try:
            answer = self.send("GET", "/metrics", key=key)
        except requests.RequestException:
            return 502, b""
        return answer.status_code, answer.content


@contextmanager
def metrics_without_key(service: Service) -> Iterator[str | None]:
    """Where a load generator that can't show a key reads the service's metrics: on loopback, for a
    run's time; None where the service asks for no key."""
    if service.metrics(key=False)[0] == 200:
        yield None
        return

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = service.metrics(key=True)
            self.send_response(status if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Read three times a second: nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def reach(name: str, candidates: Iterable[Service]) -> Service:
    """The first that answers, of a service at addresses where the controller may reach its host.

    Args:
        name: ``host/service``, for messages.

    Raises:
        UserError: when none answers, the key is refused, or the model is not served there.
    """
    problems = Problems()
    for service in candidates:
        with problems.collected():
            for entry in service.ask("GET", "/v1/models")["data"]:
                if service.model in model_list.names({"data": [entry]}):
                    return replace(service, context=model_list.context(entry))
            raise _MESSAGES.refusal("not-served", service.url, model=service.model)
    raise UserError(
        mistake(f"{name}: {problem.subject.place}", problem.observed, problem.remedy)
        for problem in problems
    )
