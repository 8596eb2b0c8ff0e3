"""Files of planned services, and the trial of a chat template."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sparkwright.catalog.file_entries import File, is_code
from sparkwright.documents import bounds, text_files
from sparkwright.findings.user_error import refusal
from sparkwright.host.lib.records import dataclass
from sparkwright.plan.tags import MESSAGES
from sparkwright.resolve.pinned_text import PinnedText
from sparkwright.text.shipped_yaml import beside

#: Seconds for the trial of a template; its process limits itself to 5 s of CPU.
_WAIT = 20
_TRIAL = Path(__file__).with_name("template_trial.py")


def source_of(name: str, folders: Sequence[Path], where: str, most: int) -> tuple[Path, bytes]:
    """Return the path and the content of a source, in the first of these folders that has it.

    Args:
        where: the key with the source's name.
        most: largest size in bytes.

    Raises:
        UserError: the file is missing, leads out of the folders or can't be read.
    """
    paths = [folder / name for folder in folders]
    path = next((path for path in paths if path.exists()), paths[0])
    if not path.exists():
        raise MESSAGES.refusal("no-file", where, path=path)
    if not any(path.resolve().is_relative_to(folder.resolve()) for folder in folders):
        facts = {"path": path, "target": path.resolve(), "folder": folders[0]}
        raise MESSAGES.refusal("file-leads-out", where, **facts)
    try:
        return path, text_files.read_bytes(path, most)
    except bounds.Unusable as error:
        raise refusal(str(path), error.fault, error.remedy) from None


@dataclass(frozen=True)
class PlannedFile:
    """A file of a service with its content.

    Attributes:
        source: origin of the content: a path of the controller, or ``repository@commit/file``.
        pin: the part that the lock keeps of a repository's file; None for a file beside the recipe.
    """

    file: File
    source: str
    content: bytes
    pin: PinnedText | None = None

    @property
    def is_code(self) -> bool:
        """Return whether the engine may run the file."""
        return is_code((self.file.at, self.file.name), self.content)

    @property
    def sha256(self) -> str:
        """Hash of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def name(self) -> str:
        """Name of the file in a release's folder: different content gets a different name."""
        return f"{self.sha256[:16]}-{self.file.at.rpartition('/')[2]}"

    @property
    def text(self) -> str:
        """Return the content as text; bytes that are not text become lone surrogates."""
        return self.content.decode("utf-8", "surrogateescape")


@cache  # read once for all hosts
def trial(text: str, messages: str, tools: bool) -> tuple[int, str]:
    """Line and reason of a template's mistake; an empty reason without a mistake.

    Args:
        messages: ``messages`` of a conversation, or ``scored`` texts, to render; empty for a
            template that is only parsed.
    """
    data = beside(__file__, "conversation.yaml")
    values = {**data["values"], "tools": data["tools"] if tools else None}
    values["messages"] = data.get(messages, [])
    request = json.dumps({"text": text, "values": values})
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_TRIAL)], input=request, text=True, timeout=_WAIT,
            capture_output=True, check=True, env={},
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return 0, "the template can't be rendered within 5 seconds"
    line, reason = json.loads(done.stdout)
    return line, reason
