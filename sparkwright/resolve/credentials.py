"""Credentials of hubs and registries: the token for gated models, and accounts.

Accounts of private registries are in a file as ``docker login`` writes it, or what a command
prints.
"""

import base64
import os
import re
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.config.secret_commands import line, printed
from sparkwright.config.secrets import Secret, Source
from sparkwright.documents import json_text
from sparkwright.documents import text_files as files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError, refusal

#: What an HTTP header takes.
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
#: What Docker's file calls Docker Hub, and the host that is asked for its images.
_HUB = {"index.docker.io": "registry-1.docker.io", "docker.io": "registry-1.docker.io"}


def hub_token(source: Source | None) -> Secret | None:
    """The token for gated models: of a file or command, or of the environment.

    Raises:
        UserError: when the file can't be read, or the command prints none.
    """
    if source is None:
        token = os.environ.get("HF_TOKEN", "").strip()
        return Secret(token) if token else None
    if not isinstance(source, str):
        return Secret(line(source, "hub_token_command"))
    try:
        token = files.read(Path(source)).strip()
        if not _TOKEN.fullmatch(token):
            raise Unusable("this is no token", "")
    except Unusable as error:
        remedy = "put the token there, or set HF_TOKEN instead"
        raise refusal(f"hub_token_file: {source}", error.what, remedy) from None
    return Secret(token)


def account(source: Source | None, registry: str) -> str | None:
    """``user:password`` for a registry (``http(s)://host[:port]``), or None.

    Raises:
        UserError: for a file or command that can't be used, or an account sent without encryption.
    """
    if source is None:
        return None
    url = urlsplit(registry)
    result = _accounts(source).get(url.netloc)
    # A registry on this machine is the only one that clear text does not betray.
    if result and url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost"):
        what = f"the account of {url.netloc} would cross the network unencrypted"
        remedy = f"give {url.netloc} a certificate and set its mirror to https://"
        raise _unusable(source, what, remedy)
    return result


@cache
def _accounts(source: Source) -> dict[str, str]:
    try:
        if isinstance(source, str):
            text = files.read(Path(source))
        else:
            text = printed(source, "registry_auth_command")
    except Unusable as error:
        raise _unusable(source, error.what, "log in with 'docker login'") from None
    try:
        data = json_text.load(text)
        entries = dict(data.get("auths") or {})
    except (Unusable, ValueError, AttributeError, TypeError):
        raise _unusable(source, "is no config.json of Docker's", "name the right file") from None
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
            raise _unusable(source, f"the entry of {host} makes no sense", "log in again") from None
    if not result and (data.get("credsStore") or data.get("credHelpers")):
        what = "Docker keeps the accounts in a credential store, not in this file"
        remedy = "log in with a DOCKER_CONFIG directory whose config.json names no credsStore"
        raise _unusable(source, what, remedy)
    return result


def _unusable(source: Source, what: str, remedy: str) -> UserError:
    if isinstance(source, str):
        return refusal(f"registry_auth_file: {source}", what, remedy)
    return refusal(f"registry_auth_command: {shlex.join(source)}", what, remedy)
