"""The fleet's endpoints in each client's own format: the templates in ``templates/clients``."""

import json
import re
from collections.abc import Sequence
from typing import (
    Any,
    NotRequired,  # pydantic wants these before Python 3.12
)

import yaml
from typing_extensions import TypedDict

from sparkwright.config.templates import template
from sparkwright.site.endpoints import Endpoint, cas, key_command, keys

#: The command's choices.
FORMATS = ("openclaw", "litellm", "open-webui", "env", "json")
#: Templates that are read as YAML, and written as JSON.
_JSON = ("openclaw", "json")


class KeyPlace(TypedDict, total=False):
    """Where a client finds the key: a variable, and the file or command that has it."""

    variable: str
    file: str
    command: list[str]


class ClientEndpoint(TypedDict):
    """A service as its clients see it; ``names`` with the sampling that the card advises."""

    id: str
    host: str
    service: str
    base_url: str
    api_key: KeyPlace
    ca: NotRequired[str]
    model: str
    context: int | None
    max_output: int | None
    images: bool
    tools: bool
    reasoning: bool
    names: dict[str, dict[str, Any]]


class Endpoints(TypedDict):
    """Every endpoint of the fleet."""

    endpoints: list[ClientEndpoint]


def render(form: str, endpoints: Sequence[Endpoint]) -> str:
    """The configuration of a client, with keys by name, file or command."""
    advice = [f"{name.name}: {name.words}" for endpoint in endpoints for name in endpoint.names]
    text = template(f"clients/{form}.j2").render(
        endpoints=endpoints,
        keys=keys(endpoints),
        cas=cas(endpoints),
        key_command=key_command,
        advice=list(dict.fromkeys(advice)),
        word=_word,
    )
    return json.dumps(yaml.safe_load(text), indent=2) + "\n" if form in _JSON else text


def _word(text: str) -> str:
    """A word of a ``.env`` file: in single quotes unless every reader takes it bare."""
    return text if re.fullmatch(r"[A-Za-z0-9._/@:,-]+", text) else f"'{text}'"
