"""Secrets of a site: from the environment, a command, or a file of the controller.

Unless a setting provides the fleet's API key, sparkwright makes the key once, in a 0600 file.
"""

import hashlib
import os
import re
import secrets
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from sparkwright.config.secret_commands import LARGEST, line, printed
from sparkwright.documents import text_files as files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import Messages, refusal

_MESSAGES = Messages(__file__)
VARIABLE = "SPARKWRIGHT_API_KEY"
#: Origin of a secret: a file of the controller, or a command that prints it.
Source = str | tuple[str, ...]
#: Words of a command that prints a secret, as settings have them.
Command = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
#: Pattern of values that survive an environment file and an HTTP header unchanged.
_FORM = re.compile(r"[A-Za-z0-9._~+/=-]{16,256}")


@dataclass(frozen=True)
class Secret:
    """A secret value that str() and repr() hide."""

    value: str

    def __str__(self) -> str:
        return "(secret)"

    __repr__ = __str__


class SecretText(str):
    """A file's text that is written unchanged, and is hidden in records and messages."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(secret)"


def shown(source: Source) -> str:
    """Return a shell expression that inserts the secret: ``$(cat FILE)`` or ``$(COMMAND)``."""
    return f"$({shlex.join(('cat', source) if isinstance(source, str) else source)})"


def pasted(source: Source) -> str:
    """Return a shell expression that inserts the API key in any folder of the controller."""
    if os.environ.get(VARIABLE):
        return f"${VARIABLE}"
    return shown(str(Path(source).absolute()) if isinstance(source, str) else source)


def api_key(source: Source | Path, environment: Mapping[str, str], *, dry: bool = False) -> Secret:
    """Return the key from the environment, otherwise from the command or file; a missing file is
    made.

    Args:
        dry: whether to write nothing; then a missing file gets a temporary key.

    Raises:
        UserError: the key has an unsupported form, other users may read the file, or the command
        prints no key.
    """
    if VARIABLE in environment:
        return checked(environment[VARIABLE], f"environment: {VARIABLE}")
    if isinstance(source, tuple):
        where = f"api_key_command: {shlex.join(source)}"
        return checked(line(source, "api_key_command"), where)
    path = Path(source)
    if path.exists():
        return checked(private_text(path, "the API key"), str(path))
    if dry:
        return Secret(f"sk-not-made-yet-{hashlib.sha256(str(path).encode()).hexdigest()}")
    key = f"sk-{secrets.token_urlsafe(32)}"
    made(path, f"{key}\n")
    return Secret(key)


def existing_key(source: Source, environment: Mapping[str, str]) -> Secret:
    """Return the key of ``api_key``, without making a key.

    Raises:
        UserError: the key is missing, or as in ``api_key``.
    """
    if VARIABLE not in environment and isinstance(source, str) and not Path(source).exists():
        raise _MESSAGES.refusal("no-key", source, variable=VARIABLE)
    return api_key(source, environment)


def of_service(
    source: Source | None, variable: str | None, environment: Mapping[str, str], where: str
) -> Secret:
    """Return a secret of a service without surrounding white space.

    Args:
        where: file and key, for messages. Messages hide the command, and the path of a missing
            file: either can be a pasted secret.

    Raises:
        UserError: the secret is empty, or its file or command can't be used.
    """
    if isinstance(source, tuple):
        return Secret(printed(source, where, shown=False))
    text = environment.get(variable or "", "")
    if source:
        text = private_text(Path(source), "the secret", where)
    if not text.strip():
        raise _MESSAGES.refusal("empty-secret", where)
    return Secret(text.strip())


def private_text(path: Path, subject: str, where: str | None = None) -> str:
    """Return the text of a file with a secret, without surrounding white space.

    Args:
        where: text for messages, in place of the path.

    Raises:
        UserError: the file can't be read, or other users can read the file.
    """
    try:
        text = files.read(path, LARGEST).strip()
    except Unusable as error:
        raise refusal(where or error.place(str(path)), error.fault, error.remedy) from None
    if fault := exposure(path, subject):
        raise refusal(where or str(path), *fault)
    return text


def exposure(path: Path, subject: str) -> tuple[str, str] | None:
    """Return the fault of a secret's file that other users can read, and the remedy; None without a
    fault.

    Besides this user and root, the site's owner may own the file, since a run executes the owner's
    deploy.py anyway.
    """
    status = path.stat()
    if (mode := stat.S_IMODE(status.st_mode)) & 0o077:
        return f"other users can read {subject} (mode {mode:o})", f"chmod 600 {path}"
    if status.st_uid not in (0, os.geteuid(), Path().stat().st_uid):
        return f"{subject} belongs to another user (uid {status.st_uid})", f"chown $USER {path}"
    return None


def made(path: Path, text: str) -> None:
    """Write a file that only its owner can read; an existing file stays."""
    if not path.exists():
        files.write(path, text, 0o600)


def checked(key: str, where: str) -> Secret:
    """Return a key that an environment file and an HTTP header can contain. Raises UserError."""
    if not _FORM.fullmatch(key):
        raise _MESSAGES.refusal("unusable-key", where)
    return Secret(key)
