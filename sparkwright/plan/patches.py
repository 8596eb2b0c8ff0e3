"""Steps of derived images, read from the patches of a recipe."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkwright.catalog import Image, Recipe, file_entries
from sparkwright.findings.user_error import Problems
from sparkwright.plan.files import source_of
from sparkwright.plan.tags import MESSAGES
from sparkwright.resolve.references import Steps

#: Largest size of a file in bytes: a larger file is not source text but a mistake.
_MOST = 4 << 20
#: Part of a repository's name in Docker: the derived image has the recipe's name.
_DOCKER_NAME = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*")


def steps_of(recipe: Recipe, image: Image, file: Path | None, host: str) -> Steps | None:
    """Read the steps of a recipe; None for a recipe without patches.

    Args:
        image: the base image.
        file: the catalog's file with the patches; the files of the steps are in or below this
            file's folder.

    Raises:
        UserError: the base is a built image, no image can have the recipe's name, or a step's files
            are unusable.
    """
    if not recipe.patches or file is None:
        return None
    if image.build:
        raise MESSAGES.refusal("built-base", f"{file}: patches", host, image=image.name)
    if not _DOCKER_NAME.fullmatch(recipe.name):
        raise MESSAGES.refusal(
            "no-image-name", f"recipe {recipe.name}: name", host, name=recipe.name
        )
    files: dict[str, bytes] = {}
    steps, problems = [], Problems()
    for number, patch in enumerate(recipe.patches):
        with problems.collected():
            where = f"{file}: patches.{number}"
            steps.append(_step(patch, file.parent, where, host, files))
    problems.stop()
    return Steps(recipe.name, json.dumps(steps, sort_keys=True), tuple(sorted(files.items())))


def _step(
    patch: file_entries.Patch, folder: Path, where: str, host: str, files: dict[str, bytes]
) -> dict[str, Any]:
    """A step as the container reads it; its files are added by the hash of their content."""

    def kept(source: str, key: str) -> str:
        _, content = source_of(source, [folder], f"{where}.{key}", _MOST)
        name = hashlib.sha256(content).hexdigest()
        files[name] = content
        return name

    if patch.promises:
        return {"promises": patch.promises.model_dump()}
    if patch.patch is None:
        return {"files": {each.at: kept(each.source, "files") for each in patch.files}}
    # The import takes 2.4 ms, and only services with patches need it.
    from sparkwright.host.fetch.steps import parse

    name = kept(patch.patch, "patch")
    try:
        parse(files[name].decode(), patch.strip, patch.reverse)
    except ValueError as error:
        raise MESSAGES.refusal(
            "no-diff", f"{where}.patch", host, source=patch.patch, error=error
        ) from None
    facts = patch.model_dump(include={"into", "strip", "optional", "reverse"})
    return {"patch": {patch.patch: {**facts, "file": name}}}


def files_of(steps: Steps) -> Iterator[str]:
    """Paths in the image that certainly have a file after the steps, by the names in the steps."""
    from sparkwright.host.fetch.steps import parse  # only services with patches need it

    files = dict(steps.files)
    for step in json.loads(steps.text):
        yield from step.get("files", ())
        yield from step.get("promises", {}).get("sha256", ())
        for patch in step.get("patch", {}).values():
            if patch.get("optional"):
                continue
            text = files[patch["file"]].decode()
            for name in parse(text, patch["strip"], patch["reverse"]):
                yield f"{patch['into']}/{name}"
