"""OpenClaw: providers and per-model parameters for ``~/.openclaw/openclaw.json``.

The form is that of OpenClaw 2026.9.6, as its own ``openclaw config schema`` prints it
(tests/fixtures/clients/), and as its ``docs/providers/vllm.md`` and ``docs/gateway/config-agents``
describe it. One provider is one base URL, so every service is a provider of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sparkwright.site.endpoints import Endpoint, ServedName

#: What OpenClaw sends by itself when it stands in ``params``; the rest goes through extra_body.
#: Seen on the wire with 2026.9.6: top_p and top_k in params are dropped in silence.
_OWN_PARAMETERS = ("temperature", "presence_penalty")


def render(endpoints: Sequence[Endpoint]) -> str:
    """JSON to merge into the user's own, which has much else in it.

    ``agents.defaults.models`` only holds settings there; older releases took it for the list of
    models that may be used at all.
    """
    parameters = {
        f"{endpoint.id}/{served.name}": {"params": params}
        for endpoint in endpoints
        for served in endpoint.names
        if (params := _parameters(served, endpoint))
    }
    config: dict[str, Any] = {
        "models": {
            "mode": "merge",
            "providers": {endpoint.id: _provider(endpoint) for endpoint in endpoints},
        },
        "agents": {"defaults": {"models": parameters}},
    }
    return json.dumps(config, indent=2) + "\n"


def _provider(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "baseUrl": endpoint.base_url,
        "apiKey": f"${{{endpoint.key.variable}}}",
        "api": "openai-completions",
        "models": [_model(served, endpoint) for served in endpoint.names],
    }


def _model(served: ServedName, endpoint: Endpoint) -> dict[str, Any]:
    title = f" ({served.advice.title})" if served.advice else ""
    compat: dict[str, Any] = {"supportsTools": endpoint.tools}
    if endpoint.reasoning:
        compat["thinkingFormat"] = "qwen-chat-template"  # chat_template_kwargs.enable_thinking
    model: dict[str, Any] = {
        "id": served.name,
        "name": f"{served.name}{title} on {endpoint.host}",
        "reasoning": endpoint.reasoning,
        "input": ["text", "image"] if endpoint.images else ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "compat": compat,
    }
    if endpoint.context:
        model |= {"contextWindow": endpoint.context, "maxTokens": endpoint.max_output}
    return model


def _parameters(served: ServedName, endpoint: Endpoint) -> dict[str, Any]:
    figures = served.figures
    params: dict[str, Any] = {key: figures.pop(key) for key in _OWN_PARAMETERS if key in figures}
    if figures:
        params["extra_body"] = figures
    if endpoint.reasoning and served.thinking is not None:
        params["thinking"] = "low" if served.thinking else "off"
    return params
