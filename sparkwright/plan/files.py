"""Files of planned services, steps of derived images, and the trial of a chat template."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.catalog import Image, Recipe
from sparkwright.catalog.files import File, Patch, is_code
from sparkwright.findings.user_error import Problems
from sparkwright.host.fetch.steps import parse
from sparkwright.plan.tags import MESSAGES
from sparkwright.resolve.pinned_text import PinnedText
from sparkwright.resolve.references import Steps
from sparkwright.text.shipped_yaml import beside

#: Bytes of one file: more is no source text but a mistake.
_MOST = 4 << 20
#: Part of a repository's name in Docker: the derived image has the recipe's name.
_DOCKER_NAME = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*")


def steps_of(recipe: Recipe, image: Image, file: Path | None, host: str) -> Steps | None:
    """Read the steps of a recipe; None for a recipe without patches.

    Args:
        image: the base.
        file: the recipe's own file, beside which the files of its steps lie.

    Raises:
        UserError: for a base that is built itself, a recipe's name that no image can have, and
            every step whose files can't be used.
    """
    if not recipe.patches or file is None:
        return None
    if image.build:
        raise MESSAGES.refusal("built-base", f"{file}: patches", host, image=image.name)
    if not _DOCKER_NAME.fullmatch(recipe.name):
        raise MESSAGES.refusal("no-image-name", f"{file}: name", host, name=recipe.name)
    files: dict[str, bytes] = {}
    steps, problems = [], Problems()
    for number, patch in enumerate(recipe.patches):
        with problems.collected():
            where = f"{file}: patches.{number}"
            steps.append(_step(patch, file.parent, where, host, files))
    problems.stop()
    return Steps(recipe.name, json.dumps(steps, sort_keys=True), tuple(sorted(files.items())))


def _step(
    patch: Patch, folder: Path, where: str, host: str, files: dict[str, bytes]
) -> dict[str, Any]:
    """A step as the container reads it; its files are added by the hash of their content."""

    def kept(source: str, key: str) -> str:
        path = (folder / source).resolve()
        inside = path.is_relative_to(folder.resolve()) and path.is_file()
        if not inside or path.stat().st_size > _MOST:
            raise MESSAGES.refusal("no-step-file", f"{where}.{key}", host, source=source)
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest()
        files[name] = content
        return name

    if patch.promises:
        return {"promises": patch.promises.model_dump()}
    if patch.patch is None:
        return {"files": {each.at: kept(each.source, "files") for each in patch.files}}
    name = kept(patch.patch, "patch")
    try:
        parse(files[name].decode(), patch.strip, patch.reverse)
    except ValueError as error:
        raise MESSAGES.refusal(
            "no-diff", f"{where}.patch", host, source=patch.patch, error=error
        ) from None
    facts = patch.model_dump(include={"into", "strip", "optional", "reverse"})
    return {"patch": {patch.patch: {**facts, "file": name}}}


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
def trial(text: str, messages: str, tools: bool) -> tuple[int, str]:
    """Line and reason of a template's mistake; an empty reason without one.

    Args:
        messages: what it is rendered with: ``messages`` of a conversation, or ``scored`` ones;
            empty for a template that is only parsed.
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
        return 0, "it can't be rendered within 5 seconds"
    line, reason = json.loads(done.stdout)
    return line, reason
