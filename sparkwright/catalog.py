"""The catalog: images, models and recipes as the cards publish them, read from YAML.

One file is one entry; its ``kind`` says which. Later directories extend or override earlier
ones by name, so that a user's own catalog needs no change of ours.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from sparkwright.problems import Problem, UserError, suggest
from sparkwright.validation import problems_of

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Scalar = bool | int | float | str
#: A vLLM argument's value: a flag (bool), one value, several values, or a JSON object.
ArgumentValue = bool | int | float | str | list[Scalar] | dict[str, Scalar | None]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tag(_Data):
    """One tag of an image: what it holds and where that is said.

    Attributes:
        vllm: the vLLM version inside.
        rollback: the tag that the card names to go back to.
    """

    date: dt.date
    vllm: str
    rollback: str | None = None
    source: str


class ImageSize(_Data):
    """Sizes as people see them, in GiB: for checks made before the registry is asked."""

    pull_gib: float
    unpacked_gib: float


class Image(_Data):
    """A container image repository and its tags."""

    kind: Literal["image"]
    name: Name
    repository: str
    entrypoint: str
    size: ImageSize
    newest_tag: str
    tags: dict[str, Tag]


class Model(_Data):
    """A Hugging Face repository at a revision.

    Attributes:
        revision: branch, tag or commit.
        not_before: commits older than this day are known to be bad.
        size_gib: of all files together, as the card gives it.
    """

    kind: Literal["model"]
    name: Name
    repository: str
    revision: str
    not_before: dt.date | None = None
    role: Literal["body", "drafter"]
    format: Literal["compressed-tensors", "modelopt", "bf16"]
    size_gib: float
    source: str


class Mounted(_Data):
    """A model and the path at which the container sees it."""

    model: Name
    mount: str


class Needs(_Data):
    """What a recipe needs of its host.

    Attributes:
        compute_caps: accepted compute capabilities.
        memory_gib: least MemTotal of the host, in GiB.
        vram_gib: least memory of the GPU itself, in GiB; None on unified memory.
    """

    compute_caps: tuple[str, ...]
    memory_gib: float
    vram_gib: float | None = None


class Recipe(_Data):
    """Image + body + drafter + vLLM arguments + environment + needs.

    Attributes:
        arguments: ``vllm serve`` arguments, in order, with underscores; ``true`` is a bare flag.
        boot_seconds: how long a first boot may take until ``/health`` answers.
        first_answer_seconds: how long the first generation may take after that.
    """

    kind: Literal["recipe"]
    name: Name
    title: str
    source: str
    image: Name
    body: Mounted
    drafter: Mounted | None = None
    served_names: tuple[str, ...] = Field(min_length=1)
    needs: Needs
    environment: dict[str, str] = {}
    arguments: dict[str, ArgumentValue]
    boot_seconds: int = Field(gt=0)
    first_answer_seconds: int = Field(gt=0)


class Catalog(_Data):
    """Every entry by name."""

    images: dict[str, Image] = {}
    models: dict[str, Model] = {}
    recipes: dict[str, Recipe] = {}


_ENTRY: TypeAdapter[Image | Model | Recipe] = TypeAdapter(
    Annotated[Image | Model | Recipe, Field(discriminator="kind")]
)


def load_catalog(directories: Sequence[Path]) -> Catalog:
    """Read every ``*.yaml`` below the directories and check that names lead somewhere.

    Raises:
        UserError: with every problem of every file.
    """
    images: dict[str, Image] = {}
    models: dict[str, Model] = {}
    recipes: dict[str, Recipe] = {}
    files: dict[tuple[str, str], Path] = {}
    problems: list[Problem] = []
    for directory in directories:
        if not directory.is_dir():
            problems.append(
                Problem(
                    str(directory),
                    "this catalog directory does not exist",
                    "create it or drop it from catalog_directories",
                )
            )
        for path in sorted(directory.rglob("*.yaml")):
            entry = _read_entry(path, problems)
            if entry is None:
                continue
            files[entry.kind, entry.name] = path
            match entry:
                case Image():
                    images[entry.name] = entry
                case Model():
                    models[entry.name] = entry
                case Recipe():
                    recipes[entry.name] = entry
    catalog = Catalog(images=images, models=models, recipes=recipes)
    problems.extend(_dangling(catalog, files))
    if problems:
        raise UserError(problems)
    return catalog


def _read_entry(path: Path, problems: list[Problem]) -> Image | Model | Recipe | None:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_SAFE_LOADER)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problems.append(
            Problem(
                str(path), f"this is no YAML: {_one_line(error)}", "mend the file at that place"
            )
        )
        return None
    try:
        return _ENTRY.validate_python(data)
    except ValidationError as error:
        problems.extend(problems_of(error, str(path), tagged=True))
        return None


def _dangling(catalog: Catalog, files: dict[tuple[str, str], Path]) -> Iterator[Problem]:
    for image in catalog.images.values():
        where = f"{files['image', image.name]}"
        names = [("newest_tag", image.newest_tag)]
        names += [
            (f"tags.{tag}.rollback", data.rollback)
            for tag, data in image.tags.items()
            if data.rollback
        ]
        for key, tag in names:
            if tag not in image.tags:
                yield Problem(
                    f"{where}: {key}", f"no such tag: {tag!r}", suggest(tag, list(image.tags))
                )
    for recipe in catalog.recipes.values():
        where = f"{files['recipe', recipe.name]}"
        if recipe.image not in catalog.images:
            yield Problem(
                f"{where}: image",
                f"no such image: {recipe.image!r}",
                suggest(recipe.image, list(catalog.images)),
            )
        for key, mounted in (("body", recipe.body), ("drafter", recipe.drafter)):
            if mounted and mounted.model not in catalog.models:
                yield Problem(
                    f"{where}: {key}.model",
                    f"no such model: {mounted.model!r}",
                    suggest(mounted.model, list(catalog.models)),
                )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


_SAFE_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
