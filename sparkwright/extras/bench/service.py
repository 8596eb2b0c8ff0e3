"""A running service as a benchmark sees it: queried over HTTP from the controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import requests

from sparkwright.config.secrets import Secret
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake

_SECONDS = 10.0


@dataclass(frozen=True)
class Service:
    """One service that answers.

    Attributes:
        url: ``http://host:port``.
        model: the name in requests.
        context: tokens that prompt and answer may have together; None where it does not say.
        ca: file by which https is verified; None for the public CAs.
    """

    url: str
    model: str
    key: Secret
    context: int | None
    ca: str | None = None

    def tokens(self, text: str) -> int:
        """How many tokens vLLM makes of a text.

        Raises:
            UserError: when it does not answer.
        """
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        answer = _ask("POST", f"{self.url}/tokenize", self.key, body, self.ca)
        return int(answer["count"])


def reach(
    name: str,
    addresses: Sequence[str],
    port: int,
    model: str,
    key: Secret,
    *,
    scheme: str = "http",
    ca: str | None = None,
) -> Service:
    """The service at the first of its host's addresses that answers.

    Args:
        name: ``host/service``, for messages.
        addresses: where the controller may reach the host, the likeliest first.
        ca: file by which https is verified; None for the public CAs.

    Raises:
        UserError: when none answers, the key is refused, or the model is not served there.
    """
    said: list[Finding] = []
    for address in addresses:
        url = f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"
        try:
            listed = _ask("GET", f"{url}/v1/models", key, ca=ca)["data"]
        except UserError as error:
            said += error.findings
            continue
        for entry in listed:
            if entry["id"] == model:
                return Service(url, model, key, entry.get("max_model_len"), ca)
        raise UserError(
            [
                mistake(
                    name, f"{url} does not serve {model!r}", "deploy first: pyinfra ... deploy.py"
                )
            ]
        )
    raise UserError(
        mistake(f"{name}: {problem.subject.place}", problem.observed, problem.remedy)
        for problem in said
    )


def _ask(method: str, url: str, key: Secret, body: Any = None, ca: str | None = None) -> Any:
    try:
        answer = requests.request(
            method, url, json=body, headers={"Authorization": f"Bearer {key.value}"},
            timeout=_SECONDS, verify=ca or True,
        )  # fmt: skip
        if answer.status_code == 401:
            raise UserError(
                [mistake(url, "the API key is refused", "take the key of the fleet that serves: "
                         "api_key_file, or SPARKWRIGHT_API_KEY")]
            )  # fmt: skip
        answer.raise_for_status()
        return answer.json()
    except (requests.RequestException, ValueError) as error:
        short = str(error).splitlines()[0][:160]
        raise UserError(
            [mistake(url, f"no answer from the controller: {short}",
                     "is it deployed, and its port open to the controller (bind, firewall)?")]
        ) from None  # fmt: skip
