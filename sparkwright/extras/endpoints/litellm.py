"""LiteLLM proxy: ``config.yaml`` with a deployment for every name of every service.

The proxy shares a name's requests among the deployments of that ``model_name``
(docs.litellm.ai/docs/proxy/configs and /docs/routing), and takes ``os.environ/NAME`` for a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from sparkwright.site.endpoints import Endpoint, ServedName, cas, key_command, keys


def render(endpoints: Sequence[Endpoint]) -> str:
    """YAML for ``litellm --config``."""
    config: dict[str, Any] = {
        "model_list": [
            _deployment(served, endpoint) for endpoint in endpoints for served in endpoint.names
        ],
        "router_settings": {
            "routing_strategy": "least-busy",
            # Hosts may serve one name with different contexts: a long prompt goes to one that
            # can hold it.
            "enable_pre_call_checks": True,
        },
    }
    known = cas(endpoints)
    if known:
        config["litellm_settings"] = {"ssl_verify": known[0]}
    head = [
        "# LiteLLM proxy: litellm --config THIS_FILE. It reads the keys from its environment:",
        *(f"#   {key_command(key)}" for key in keys(endpoints)),
        *(
            "# ssl_verify replaces the public CAs: for other providers too, add theirs to that file"
            + "".join(f", and {more}" for more in known[1:])
            for _ in known[:1]
        ),
        "# The proxy asks its own clients for no key unless general_settings.master_key is set.",
    ]
    return "\n".join(head) + "\n" + yaml.safe_dump(config, sort_keys=False, width=100)


def _deployment(served: ServedName, endpoint: Endpoint) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "model": f"hosted_vllm/{served.name}",
        "api_base": endpoint.base_url,
        "api_key": f"os.environ/{endpoint.key.variable}",
        **served.figures,
    }
    if endpoint.reasoning and served.thinking is not None:
        parameters["chat_template_kwargs"] = {"enable_thinking": served.thinking}
    info: dict[str, Any] = {
        "id": f"{endpoint.id}/{served.name}",
        "mode": "chat",
        "supports_vision": endpoint.images,
        "supports_function_calling": endpoint.tools,
        "supports_reasoning": endpoint.reasoning,
    }
    if endpoint.context:
        info |= {
            "max_tokens": endpoint.max_output,
            "max_input_tokens": endpoint.max_input,
            "max_output_tokens": endpoint.max_output,
        }
    return {"model_name": served.name, "litellm_params": parameters, "model_info": info}
