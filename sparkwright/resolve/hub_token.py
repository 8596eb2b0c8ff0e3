"""The token for gated models."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparkwright.config.secret_commands import line
from sparkwright.config.secrets import Secret, Source
from sparkwright.documents import files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError, mistake

#: What an HTTP header takes.
_FORM = re.compile(r"[\x21-\x7e]{1,4096}")


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
        if not _FORM.fullmatch(token):
            raise Unusable("this is no token", "")
    except Unusable as error:
        remedy = "put the token there, or set HF_TOKEN instead"
        raise UserError([mistake(f"hub_token_file: {source}", error.what, remedy)]) from None
    return Secret(token)
