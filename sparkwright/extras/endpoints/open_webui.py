"""Open WebUI: a Compose fragment with its environment.

Names and form are from its ``backend/open_webui/config.py`` and
docs.openwebui.com/getting-started/env-configuration: OPENAI_API_BASE_URLS and OPENAI_API_KEYS are
lists with ``;`` between, key by key for each URL. No variable holds settings of one model, so
sampling stands here as comments, to be set at Admin Panel, Settings, Models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from sparkwright.site.endpoints import Endpoint, cas, key_command, keys

#: Where the container sees the CA that signed the hosts' certificates.
_CA = "/etc/ssl/sparkwright-ca.crt"


def render(endpoints: Sequence[Endpoint]) -> str:
    """``compose.override.yaml`` for the service ``open-webui``; Compose fills the keys in."""
    environment = {
        "ENABLE_OPENAI_API": "True",
        "OPENAI_API_BASE_URLS": ";".join(one.base_url for one in endpoints),
        # With :? Compose refuses to start without a key, where Open WebUI would find no models.
        "OPENAI_API_KEYS": ";".join(
            f"${{{one.key.variable}:?an API key of the fleet}}" for one in endpoints
        ),
        "DEFAULT_MODELS": endpoints[0].names[0].name,
    }
    service: dict[str, Any] = {"environment": environment}
    if known := cas(endpoints):
        # Beside the public ones, which its image has in a directory (SSL_CERT_DIR).
        environment["SSL_CERT_FILE"] = _CA
        service["volumes"] = [f"{known[0]}:{_CA}:ro"]
    fragment = {"services": {"open-webui": service}}
    advice = {f"#   {served.name}: {served.words}" for one in endpoints for served in one.names}
    head = [
        "# Open WebUI, beside its own Compose file. Compose reads the keys from its environment:",
        *(f"#   {key_command(key)}" for key in keys(endpoints)),
        "# Open WebUI reads these variables at its first start, and keeps what it read; with",
        '# ENABLE_PERSISTENT_CONFIG: "False" it reads them at every start.',
        "# It does not share a name's requests among hosts: put LiteLLM between for that.",
        "# What to set for each model (Admin Panel, Settings, Models):",
        *sorted(advice),
    ]
    text = yaml.safe_dump(fragment, sort_keys=False, width=1000)
    return "\n".join(head) + "\n" + text
