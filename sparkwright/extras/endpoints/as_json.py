"""Endpoints as plain data, for clients that have no format here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import (
    Any,
    NotRequired,  # pydantic wants these before Python 3.12
)

from typing_extensions import TypedDict

from sparkwright.site.endpoints import Endpoint, ServedName


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


def render(endpoints: Sequence[Endpoint]) -> str:
    """``{"endpoints": [...]}``, one object per service; keys by name, file or command."""
    return json.dumps({"endpoints": [_entry(one) for one in endpoints]}, indent=2) + "\n"


def _entry(endpoint: Endpoint) -> dict[str, Any]:
    kind = "file" if isinstance(endpoint.key.source, str) else "command"
    return {
        "id": endpoint.id,
        "host": endpoint.host,
        "service": endpoint.service,
        "base_url": endpoint.base_url,
        "api_key": {"variable": endpoint.key.variable, kind: endpoint.key.source},
        **({"ca": endpoint.ca} if endpoint.ca else {}),
        "model": endpoint.model,
        "context": endpoint.context,
        "max_output": endpoint.max_output,
        "images": endpoint.images,
        "tools": endpoint.tools,
        "reasoning": endpoint.reasoning,
        "names": {served.name: _advice(served) for served in endpoint.names},
    }


def _advice(served: ServedName) -> dict[str, Any]:
    if served.advice is None:
        return {}
    return served.advice.model_dump(exclude_none=True)
