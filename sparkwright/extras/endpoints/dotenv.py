"""A plain ``.env``: the variables that OpenAI's own clients read, and those of every service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sparkwright.site.endpoints import Endpoint, cas, key_command, keys


def render(endpoints: Sequence[Endpoint]) -> str:
    """The first service as OPENAI_*, and every service under names of its own.

    python-dotenv, Compose and shells put ``${NAME}`` in; ``docker run --env-file`` and systemd's
    EnvironmentFile do not.
    """
    first = endpoints[0]
    lines = [
        "# The keys' values are not here; readers put them in from their own environment:",
        *(f"#   {key_command(key)}" for key in keys(endpoints)),
        "",
        f"# {first.id}",
        f"OPENAI_BASE_URL={first.base_url}",
        f"OPENAI_API_KEY=${{{first.key.variable}}}",
        f"OPENAI_MODEL={_word(first.names[0].name)}",
        "",
        *_ca(endpoints),
        "# Every service",
        *_every(endpoints),
        "",
        "# What to send with each name",
    ]
    lines += dict.fromkeys(
        f"# {name.name}: {name.words}" for one in endpoints for name in one.names
    )
    return "\n".join([*lines, ""])


def _ca(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    """For clients in Python by httpx and by requests, and for those in Node."""
    known = cas(endpoints)
    if not known:
        return
    yield "# The hosts' CA. The first two take the place of the public CAs, which a client of these"
    yield "# services alone does not need; the third one adds to them."
    for number, ca in enumerate(known):
        mark = "# and also " if number else ""
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
            yield f"{mark}{name}={_word(ca)}"
    yield ""


def _every(endpoints: Sequence[Endpoint]) -> Iterator[str]:
    """Numbered, since host names hold more than a variable's name may."""
    for number, endpoint in enumerate(endpoints, 1):
        prefix = f"SPARKWRIGHT_{number}"
        yield f"{prefix}_NAME={_word(endpoint.id)}"
        yield f"{prefix}_BASE_URL={endpoint.base_url}"
        yield f"{prefix}_API_KEY=${{{endpoint.key.variable}}}"
        yield f"{prefix}_MODELS={_word(','.join(served.name for served in endpoint.names))}"
        if endpoint.context:
            yield f"{prefix}_CONTEXT={endpoint.context}"
            yield f"{prefix}_MAX_OUTPUT={endpoint.max_output}"


def _word(text: str) -> str:
    """As it is where every reader takes it so, in single quotes elsewhere."""
    return text if re.fullmatch(r"[A-Za-z0-9._/@:,-]+", text) else f"'{text}'"
