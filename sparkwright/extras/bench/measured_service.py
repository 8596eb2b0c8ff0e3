"""Requests of the controller to a measured service, besides the load generator's requests."""

from dataclasses import dataclass, replace
from typing import Any

import requests

from sparkwright.config.secrets import Secret
from sparkwright.engines import DEFAULT, engine, metric_names
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.host.lib import http, metrics, model_list

_SECONDS = 10.0
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Service:
    """A service that answers requests.

    Attributes:
        url: ``http://host:port``.
        model: the name in requests.
        context: tokens that prompt and answer may have together; None if the server
            does not report it.
        ca: file that verifies https; None for the public CAs.
    """

    url: str
    model: str
    key: Secret
    context: int | None = None
    ca: str | None = None
    engine: str = DEFAULT

    def send(
        self, method: str, path: str, body: Any = None, seconds: float = _SECONDS
    ) -> requests.Response:
        """The answer to a request. Raises UserError without an answer."""
        headers, sent = {"Authorization": f"Bearer {self.key.value}"}, {"json": body}
        if isinstance(body, http.Form):
            headers["Content-Type"], sent = body.content_type, {"data": body.data}
        try:
            return requests.request(
                method, f"{self.url}{path}", headers=headers, verify=self.ca or True,
                timeout=seconds, **sent,
            )  # fmt: skip
        except requests.RequestException as error:
            raise self._silent(path, error) from None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer. Raises UserError without an answer, or if the key is refused."""
        answer = self.send(method, path, body)
        if answer.status_code == 401:
            raise _MESSAGES.refusal("key-refused", answer.url)
        try:
            answer.raise_for_status()
            return answer.json()
        except requests.RequestException as error:
            raise self._silent(path, error) from None

    def _silent(self, path: str, error: Exception) -> UserError:
        reason = str(error).splitlines()[0][:160]
        return _MESSAGES.refusal("no-answer", f"{self.url}{path}", error=reason)

    def counters(self) -> dict[str, float]:
        """The engine's counters by their neutral names; empty if the engine has no counters."""
        answer = self.send("GET", "/metrics")
        return metrics.totals(answer.text, metric_names()) if answer.ok else {}

    def tokens(self, text: str) -> int:
        """Return the number of tokens of a text. Raises UserError like ``ask``."""
        probes = engine(self.engine).probes
        body = {"model": self.model, probes.tokenized: text, "add_special_tokens": False}
        return len(self.ask("POST", probes.tokenizer, body)["tokens"])


def reach(service: Service) -> Service:
    """Return the service with its context length.

    Raises:
        UserError: the service does not answer, refuses the key, or does not serve the model.
    """
    for entry in service.ask("GET", "/v1/models")["data"]:
        if service.model in model_list.names({"data": [entry]}):
            return replace(service, context=model_list.context(entry))
    raise _MESSAGES.refusal("not-served", service.url, model=service.model)
