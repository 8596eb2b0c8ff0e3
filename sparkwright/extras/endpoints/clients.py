"""The fleet's endpoints in each client's own format: the templates in ``templates/clients``."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml
from pydantic import TypeAdapter

from sparkwright.config.templates import template
from sparkwright.findings.user_error import Messages
from sparkwright.site.endpoints import Endpoint, cas, key_command, keys

_MESSAGES = Messages(__file__)
#: The command's choices.
FORMATS = (
    "openclaw", "claude-code", "opencode", "codex", "litellm", "open-webui", "env", "json",
)  # fmt: skip
#: Templates that are read as YAML, and written as JSON.
_JSON = ("openclaw", "claude-code", "opencode")
#: Clients that are agents: they call tools.
_AGENTS = ("claude-code", "opencode", "codex")


@dataclass(frozen=True)
class Endpoints:
    """Every endpoint of the fleet."""

    endpoints: Sequence[Endpoint]


def render(form: str, endpoints: Sequence[Endpoint]) -> str:
    """The configuration of a client, with keys by name, file or command."""
    if form == "json":
        every = Endpoints(endpoints)
        document = TypeAdapter(Endpoints).dump_python(every, mode="json", by_alias=True)
        return json.dumps(document, indent=2) + "\n"
    advice = [f"{name.name}: {name.summary}" for endpoint in endpoints for name in endpoint.names]
    text = template(f"clients/{form}.j2").render(
        endpoints=endpoints,
        providers=_providers(endpoints),
        keys=keys(endpoints),
        cas=cas(endpoints),
        key_command=key_command,
        advice=list(dict.fromkeys(advice)),
        word=_word,
    )
    return json.dumps(yaml.safe_load(text), indent=2) + "\n" if form in _JSON else text


def _providers(endpoints: Sequence[Endpoint]) -> list[list[Endpoint]]:
    """Group the endpoints by the address that clients connect to; the fleet's address has all
    models.
    """
    by_name: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_name.setdefault(endpoint.provider, []).append(endpoint)
    return list(by_name.values())


def usable(form: str, endpoints: Sequence[Endpoint]) -> tuple[list[Endpoint], list[str]]:
    """Endpoints that a client can use, and notes on the omitted services.

    Raises:
        UserError: the client can use no endpoint.
    """
    notes: list[str] = []
    chosen = list(endpoints)
    if form not in ("env", "json"):
        notes += [f"{each.id} gives vectors or scores, and is not a model for chats: it is left out"
                  for each in chosen if not each.chats]  # fmt: skip
        chosen = [each for each in chosen if each.chats]
    if form in _AGENTS:
        notes += [f"{each.id} calls no tools, and is left out" for each in chosen if not each.tools]
        chosen = [each for each in chosen if each.tools]
    if not chosen:
        raise _MESSAGES.refusal("none-usable", f"--format {form}", notes="; ".join(notes))
    if form == "claude-code" and len(chosen) > 1:
        notes.append(f"Claude Code uses one service, {chosen[0].id}: HOST/SERVICE selects another")
        chosen = chosen[:1]
    return chosen, notes


def _word(text: str) -> str:
    """Quote a value of a ``.env`` file: in single quotes unless every reader accepts the bare
    value.
    """
    return text if re.fullmatch(r"[A-Za-z0-9._/@:,-]+", text) else f"'{text}'"
