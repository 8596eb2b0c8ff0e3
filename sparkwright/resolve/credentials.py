"""Credentials of hubs and registries: the token for gated models, and accounts.

Accounts of private registries are in a file as ``docker login`` writes it, or in a command's
output.
"""

import base64
import os
import re
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.config import secret_commands, secrets
from sparkwright.documents import bounds, json_text
from sparkwright.documents import text_files as files
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.messages import MESSAGES

#: Pattern of a token: characters of an HTTP header.
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
#: Docker Hub's name in Docker's file, and the host of its images.
_HUB = {"index.docker.io": "registry-1.docker.io", "docker.io": "registry-1.docker.io"}


def hub_token(source: secrets.Source | None) -> secrets.Secret | None:
    """The token for gated models, from a file, a command or the environment.

    Raises:
        UserError: the file can't be read, or the command prints no token.
    """
    if source is None:
        token = os.environ.get("HF_TOKEN", "").strip()
        return secrets.Secret(token) if token else None
    if not isinstance(source, str):
        return secrets.Secret(secret_commands.line(source, "hub_token_command"))
    try:
        token = files.read(Path(source)).strip()
        if not _TOKEN.fullmatch(token):
            raise bounds.Unusable("the file does not contain a token", "")
    except bounds.Unusable as error:
        where = f"hub_token_file: {source}"
        raise MESSAGES.refusal("no-token", where, problem=error.fault) from None
    return secrets.Secret(token)


def over_https(token: str | None, endpoint: str) -> str | None:
    """The token for a hub, which is never sent in clear text."""
    return token if endpoint.startswith("https://") else None


def account(source: secrets.Source | None, registry: str) -> str | None:
    """``user:password`` for a registry (``http(s)://host[:port]``), or None.

    Raises:
        UserError: a file or command can't be used, or an account would be sent without encryption.
    """
    if source is None:
        return None
    url = urlsplit(registry)
    result = _accounts(source).get(url.netloc)
    # Only a registry on this machine may get the account in clear text.
    if result and url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost"):
        raise _unusable(source, "clear-text", registry=url.netloc)
    return result


@cache
def _accounts(source: secrets.Source) -> dict[str, str]:
    try:
        if not isinstance(source, str):
            text = secret_commands.printed(source, "registry_auth_command")
        else:
            text = files.read(Path(source))
    except bounds.Unusable as error:
        raise _unusable(source, "no-accounts", problem=error.fault) from None
    try:
        data = json_text.load(text)
        entries = dict(data.get("auths") or {})
    except (bounds.Unusable, ValueError, AttributeError, TypeError):
        raise _unusable(source, "no-docker-config") from None
    result: dict[str, str] = {}
    for name, entry in entries.items():
        secret = entry.get("auth") if isinstance(entry, dict) else None
        if not secret:
            continue
        host = name
        try:
            host = urlsplit(name).netloc if "://" in name else name.partition("/")[0]
            result[_HUB.get(host, host)] = base64.b64decode(secret, validate=True).decode()
        except (ValueError, TypeError):
            raise _unusable(source, "damaged-account", registry=host) from None
    if not result and (data.get("credsStore") or data.get("credHelpers")):
        raise _unusable(source, "credential-store")
    return result


def _unusable(source: secrets.Source, message: str, **facts: str) -> UserError:
    where = f"file: {source}" if isinstance(source, str) else f"command: {shlex.join(source)}"
    return MESSAGES.refusal(message, f"registry_auth_{where}", **facts)
