"""The token for gated models."""

from __future__ import annotations

import os
from pathlib import Path

from sparkwright.config.secret_commands import line
from sparkwright.config.secrets import Secret, Source
from sparkwright.findings.user_error import UserError, mistake


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
        return Secret(Path(source).read_text(encoding="utf-8").strip())
    except OSError as error:
        raise UserError(
            [
                mistake(
                    f"hub_token_file: {source}",
                    f"can't be read: {error.strerror}",
                    "put the token there, or set HF_TOKEN instead",
                )
            ]
        ) from None
