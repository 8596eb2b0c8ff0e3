"""Accounts of private registries, from a file as ``docker login`` writes it, or a command."""

from __future__ import annotations

import base64
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.config.secret_commands import printed
from sparkwright.config.secrets import Source
from sparkwright.documents import files, json_text
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError, mistake

#: What Docker's file calls Docker Hub, and the host that is asked for its images.
_HUB = {"index.docker.io": "registry-1.docker.io", "docker.io": "registry-1.docker.io"}


def account(source: Source | None, registry: str) -> str | None:
    """``user:password`` for a registry (``http(s)://host[:port]``), or None.

    Raises:
        UserError: for a file or command that can't be used, or an account sent without encryption.
    """
    if source is None:
        return None
    url = urlsplit(registry)
    found = _accounts(source).get(url.netloc)
    # A registry on this machine is the only one that clear text does not betray.
    if found and url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost"):
        raise _unusable(
            source,
            f"the account of {url.netloc} would cross the network unencrypted",
            f"give {url.netloc} a certificate and set its mirror to https://",
        )
    return found


@cache
def _accounts(source: Source) -> dict[str, str]:
    try:
        text = (
            files.read(Path(source))
            if isinstance(source, str)
            else printed(source, "registry_auth_command")
        )
    except Unusable as error:
        raise _unusable(source, error.what, "log in with 'docker login'") from None
    try:
        data = json_text.load(text)
        entries = dict(data.get("auths") or {})
    except (Unusable, ValueError, AttributeError, TypeError):
        raise _unusable(source, "is no config.json of Docker's", "name the right file") from None
    found: dict[str, str] = {}
    for name, entry in entries.items():
        secret = entry.get("auth") if isinstance(entry, dict) else None
        if not secret:
            continue
        host = name
        try:
            host = urlsplit(name).netloc if "://" in name else name.partition("/")[0]
            found[_HUB.get(host, host)] = base64.b64decode(secret, validate=True).decode()
        except (ValueError, TypeError):
            raise _unusable(source, f"the entry of {host} makes no sense", "log in again") from None
    if not found and (data.get("credsStore") or data.get("credHelpers")):
        raise _unusable(
            source,
            "Docker keeps the accounts in a credential store, not in this file",
            "log in with a DOCKER_CONFIG directory whose config.json names no credsStore",
        )
    return found


def _unusable(source: Source, what: str, remedy: str) -> UserError:
    named = (
        f"registry_auth_file: {source}"
        if isinstance(source, str)
        else f"registry_auth_command: {shlex.join(source)}"
    )
    return UserError([mistake(named, what, remedy)])
