"""Files of planned services, and the trial of a chat template."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sparkwright.catalog.files import File, is_code
from sparkwright.resolve.pinned_text import PinnedText
from sparkwright.text.shipped_yaml import beside

#: Seconds for the trial of a template; its process gives itself 5 of the processor.
_WAIT = 20
_TRIAL = Path(__file__).with_name("template_trial.py")


@dataclass(frozen=True)
class PlannedFile:
    """A file of a service with its content.

    Attributes:
        source: where it was read: a path of the controller, or ``repository@commit/file``.
        pin: the part that the lock keeps of a repository's file; None for a file beside the recipe.
    """

    file: File
    source: str
    content: bytes
    pin: PinnedText | None = None

    @property
    def is_code(self) -> bool:
        """Whether the engine may run it."""
        return is_code((self.file.at, self.file.name), self.content)

    @property
    def sha256(self) -> str:
        """Of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def name(self) -> str:
        """Its name in a release's folder: another content has another name."""
        return f"{self.sha256[:16]}-{self.file.at.rpartition('/')[2]}"

    @property
    def base64(self) -> str:
        """The content for formats that hold text alone."""
        return b64encode(self.content).decode()

    @property
    def text(self) -> str:
        """The content as text; bytes that are none survive as halves of surrogate pairs."""
        return self.content.decode("utf-8", "surrogateescape")


@cache  # once for all hosts
def trial(text: str, tools: bool) -> tuple[int, str]:
    """Line and reason of a template's mistake; an empty reason without one."""
    data = beside(__file__, "conversation.yaml")
    values = {"messages": data["messages"], "tools": data["tools"] if tools else None}
    request = json.dumps({"text": text, "values": {**data["values"], **values}})
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_TRIAL)], input=request, text=True, timeout=_WAIT,
            capture_output=True, check=True, env={},
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return 0, "it can't be rendered within 5 seconds"
    line, reason = json.loads(done.stdout)
    return line, reason
