"""Reading the catalog from YAML.

One file is one entry; its ``kind`` says which. Later directories override earlier ones by name,
or extend an entry, so that a user's own catalog needs no change of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from sparkwright.catalog.advice import Advice
from sparkwright.catalog.causes import Causes
from sparkwright.catalog.data import Data
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.catalog.extends import over_earlier, under_new_names
from sparkwright.catalog.measurements import Measurement
from sparkwright.catalog.schema import KINDS, allowed
from sparkwright.documents import files, yaml_text
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.findings.validation import problems_of

Entry = Image | Model | Recipe | Measurement | Advice | Causes


class Catalog(Data):
    """Every entry by name.

    Attributes:
        files: (kind, name) -> the file that has the last word on the entry.
    """

    images: dict[str, Image] = Field(default_factory=dict)
    models: dict[str, Model] = Field(default_factory=dict)
    recipes: dict[str, Recipe] = Field(default_factory=dict)
    measurements: dict[str, Measurement] = Field(default_factory=dict)
    advice: dict[str, Advice] = Field(default_factory=dict)
    causes: dict[str, Causes] = Field(default_factory=dict)
    files: dict[tuple[str, str], Path] = Field(default_factory=dict)


_ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def load_catalog(directories: Sequence[Path]) -> Catalog:
    """Read every ``*.yaml`` below the directories and check that names lead somewhere.

    Raises:
        UserError: with every problem of every file.
    """
    raw: dict[tuple[str, str], tuple[Path, dict[str, Any]]] = {}
    problems: list[Finding] = []
    for directory in directories:
        if not directory.is_dir():
            problems.append(
                mistake(
                    str(directory),
                    "this catalog directory does not exist",
                    "create it or drop it from catalog_directories",
                )
            )
        problems.extend(_passed_over(directory))
        own: dict[tuple[str, str], Path] = {}
        for path in sorted(directory.rglob("*.yaml")):
            data = _read(path, problems)
            if data is None:
                continue
            key = str(data.get("kind")), str(data.get("name"))
            if key in own:
                problems.append(
                    mistake(
                        f"{path}: name",
                        f"{key[0]} {key[1]!r} is in {own[key]} already",
                        "give each entry a name of its own",
                    )
                )
                continue
            own[key] = path
            whole = over_earlier(path, data, raw.get(key))
            if isinstance(whole, Finding):
                problems.append(whole)
            else:
                raw[key] = path, whole
    raw, unclear = under_new_names(raw)
    problems.extend(unclear)
    entries: list[Entry] = []
    for (kind, _), (path, data) in raw.items():
        try:
            entries.append(_ENTRY.validate_python(data))
        except ValidationError as error:
            said = partial(allowed, kind) if kind in KINDS else None
            problems.extend(problems_of(error, str(path), tagged=True, allowed=said))
    catalog = Catalog(
        images={entry.name: entry for entry in entries if isinstance(entry, Image)},
        models={entry.name: entry for entry in entries if isinstance(entry, Model)},
        recipes={entry.name: entry for entry in entries if isinstance(entry, Recipe)},
        measurements={entry.name: entry for entry in entries if isinstance(entry, Measurement)},
        advice={entry.name: entry for entry in entries if isinstance(entry, Advice)},
        causes={entry.name: entry for entry in entries if isinstance(entry, Causes)},
        files={key: path for key, (path, _) in raw.items()},
    )
    if not problems:  # an entry that could not be read would only be missed once more
        problems.extend(_dangling(catalog))
    if problems:
        raise UserError(problems)
    return catalog


def validated(data: dict[str, Any], where: str) -> Entry:
    """One entry from its data.

    Args:
        where: the file, for messages.

    Raises:
        UserError: with every problem of it.
    """
    try:
        return _ENTRY.validate_python(data)
    except ValidationError as error:
        raise UserError(problems_of(error, where, tagged=True)) from None


def _read(path: Path, problems: list[Finding]) -> dict[str, Any] | None:
    try:
        data = yaml_text.load(files.read(path))
        if not isinstance(data, dict):
            raise Unusable("not a mapping of keys to values", "start with 'kind: ...'")
    except Unusable as error:
        problems.append(mistake(error.place(str(path)), error.what, error.remedy))
        return None
    return {str(key): value for key, value in data.items()}


def _passed_over(directory: Path) -> Iterator[Finding]:
    """Files that look like entries and are none, because of their names."""
    for path in sorted(directory.rglob("*.yml")):
        what = "a catalog's files end in .yaml, and this one is not read"
        yield mistake(str(path), what, f"rename it to {path.stem}.yaml")


def _dangling(catalog: Catalog) -> Iterator[Finding]:
    """Names that lead nowhere."""

    def missing(kind: str, name: str, key: str, wanted: str, known: Sequence[str]) -> Finding:
        where = f"{catalog.files[kind, name]}: {key}"
        what = f"no such {key.rpartition('.')[2].rstrip('0123456789[]')}: {wanted!r}"
        return mistake(where, what, suggest(wanted, known))

    for image in catalog.images.values():
        tags = list(image.tags)
        names = [("newest_tag", image.newest_tag)]
        names += [
            (f"tags.{tag}.rollback", data.rollback or tag) for tag, data in image.tags.items()
        ]
        names += [(f"issues.{i.id}.tags", tag) for i in image.issues for tag in i.tags]
        for key, tag in names:
            if tag not in image.tags:
                yield missing("image", image.name, key, tag, tags)
        if image.build and image.build.base not in catalog.images:
            yield missing("image", image.name, "build.base", image.build.base, list(catalog.images))
    for model in catalog.models.values():
        for name in model.pairs_with:
            if name not in catalog.models:
                yield missing("model", model.name, "pairs_with", name, list(catalog.models))
    for recipe in catalog.recipes.values():
        own = catalog.images.get(recipe.image)
        if own is None:
            yield missing("recipe", recipe.name, "image", recipe.image, list(catalog.images))
        else:
            for key, tags in (
                ("tag", [recipe.tag] if recipe.tag else []),
                ("tags", list(recipe.tags)),
                ("by_tag", list(recipe.by_tag)),
            ):
                for tag in tags:
                    if tag not in own.tags:
                        yield missing("recipe", recipe.name, key, tag, list(own.tags))
        for key, mounted in (("body", recipe.body), ("drafter", recipe.drafter)):
            if mounted and mounted.model not in catalog.models:
                yield missing(
                    "recipe", recipe.name, f"{key}.model", mounted.model, list(catalog.models)
                )
    for measurement in catalog.measurements.values():
        for key, wanted, known in (
            ("body", measurement.body, catalog.models),
            ("drafter", measurement.drafter, catalog.models),
            ("recipe", measurement.recipe, catalog.recipes),
            ("image", measurement.image, catalog.images),
        ):
            if wanted is not None and wanted not in known:
                yield missing("measurement", measurement.name, key, wanted, list(known))
        served = catalog.images.get(measurement.image)
        if served and measurement.tag and measurement.tag not in served.tags:
            yield missing(
                "measurement", measurement.name, "tag", measurement.tag, list(served.tags)
            )
    for advice in catalog.advice.values():
        for choice in advice.choices:
            if choice.recipe not in catalog.recipes:
                yield missing(
                    "advice", advice.name, "choices.recipe", choice.recipe, list(catalog.recipes)
                )
