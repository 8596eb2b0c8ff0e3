"""A planned fleet as clients see it, and the clients' own configuration made of it.

Keys are only ever named: what is written here may be shown, mailed and committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparkwright.extras.endpoints import as_json, dotenv, litellm, open_webui, openclaw
from sparkwright.extras.endpoints.endpoint import Endpoint

#: Format -> what renders it; the command's choices.
FORMATS: Mapping[str, Callable[[Sequence[Endpoint]], str]] = {
    "openclaw": openclaw.render,
    "litellm": litellm.render,
    "open-webui": open_webui.render,
    "env": dotenv.render,
    "json": as_json.render,
}

__all__ = ["FORMATS", "Endpoint"]
