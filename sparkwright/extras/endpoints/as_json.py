"""Endpoints as plain data, for clients that have no format here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sparkwright.extras.endpoints.endpoint import Endpoint, ServedName


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
