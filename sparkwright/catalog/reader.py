"""Reading the catalog from YAML.

One file is one entry; its ``kind`` says which. Later directories override earlier ones by name,
or extend an entry, so that a user's own catalog needs no change of ours.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from sparkwright.catalog.advice import Advice
from sparkwright.catalog.causes import Causes
from sparkwright.catalog.data import Data
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.catalog.measurements import Measurement
from sparkwright.catalog.schema import KINDS, allowed
from sparkwright.documents import text_files as files
from sparkwright.documents import yaml_text
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Problems, UserError, mistake, suggest
from sparkwright.findings.validation import problems_of

Entry = Image | Model | Recipe | Measurement | Advice | Causes
#: Kind and name of an entry.
Key = tuple[str, str]
#: A file, and what it says with everything that it extends under the same name.
Read = tuple[Path, dict[str, Any]]


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
    files: dict[Key, Path] = Field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Entries of a kind, by name."""
        entries: dict[str, Any] = getattr(
            self, kind if kind in ("advice", "causes") else f"{kind}s"
        )
        return entries


_ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def load_catalog(directories: Sequence[Path]) -> Catalog:
    """Read every ``*.yaml`` below the directories and check that names lead somewhere.

    Raises:
        UserError: with every problem of every file.
    """
    raw: dict[Key, Read] = {}
    problems = Problems()
    for directory in directories:
        problems += _read_directory(directory, raw)
    catalog = Catalog()
    for key, (path, _) in raw.items():
        data = _whole(key, raw, (), problems)
        if data is None:
            continue
        try:
            entry = _ENTRY.validate_python(data)
        except ValidationError as error:
            may = partial(allowed, key[0]) if key[0] in KINDS else None
            problems += problems_of(error, str(path), tagged=True, allowed=may)
        else:
            catalog.of_kind(entry.kind)[entry.name] = entry
            catalog.files[key] = path
    if not problems:  # an entry that could not be read would only be missed once more
        problems += _dangling(catalog)
    problems.stop()
    return catalog


def validated(data: dict[str, Any], where: str) -> Entry:
    """Validate the data of an entry.

    Args:
        where: the file, for messages.

    Raises:
        UserError: with every problem of it.
    """
    try:
        return _ENTRY.validate_python(data)
    except ValidationError as error:
        raise UserError(problems_of(error, where, tagged=True)) from None


def _read_directory(directory: Path, raw: dict[Key, Read]) -> Iterator[Finding]:
    """Add the entries of a directory to those of earlier ones, and yield problems of its files."""
    if not directory.is_dir():
        remedy = "create it or drop it from catalog_directories"
        yield mistake(str(directory), "this catalog directory does not exist", remedy)
    for path in sorted(directory.rglob("*.yml")):
        what = "a catalog's files end in .yaml, and this one is not read"
        yield mistake(str(path), what, f"rename it to {path.stem}.yaml")
    own: dict[Key, Path] = {}
    for path in sorted(directory.rglob("*.yaml")):
        try:
            data = _mapping(path)
        except Unusable as error:
            yield mistake(error.place(str(path)), error.what, error.remedy)
            continue
        key = str(data.get("kind")), str(data.get("name"))
        named = f"{key[0]} {key[1]!r}"
        if key in own:
            what = f"{named} is in {own[key]} already"
            yield mistake(f"{path}: name", what, "give each entry a name of its own")
            continue
        own[key] = path
        if data.get("extends") is not True:
            raw[key] = path, data
        elif key in raw:
            raw[key] = path, merged(raw[key][1], data)
        else:
            what = f"there is no {named} to extend"
            remedy = (
                "fix the name, name another entry in 'extends', or drop it and write the whole "
                "entry"
            )
            yield mistake(f"{path}: extends", what, remedy)


def _mapping(path: Path) -> dict[str, Any]:
    data = yaml_text.load(files.read(path))
    if not isinstance(data, dict):
        raise Unusable("not a mapping of keys to values", "start with 'kind: ...'")
    return {str(key): value for key, value in data.items()}


def _whole(
    key: Key, raw: Mapping[Key, Read], within: tuple[Key, ...], problems: Problems
) -> dict[str, Any] | None:
    """An entry over the one that it extends by name; None where that leads nowhere."""
    path, data = raw[key]
    base = data.get("extends")
    if not isinstance(base, str):
        return data
    other = (key[0], base)
    where = f"{path}: extends"
    if other in (*within, key):
        problems.append(mistake(where, f"{base!r} extends this entry", "extend another one"))
        return None
    if other not in raw:
        names = [name for kind, name in raw if kind == key[0]]
        problems.append(mistake(where, f"no such {key[0]}: {base!r}", suggest(base, names)))
        return None
    under = _whole(other, raw, (*within, key), problems)
    return None if under is None else merged(under, data)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Mappings key by key; everything else is replaced, and ``extends`` is left out."""
    both = dict(base)
    for key, value in over.items():
        nested = isinstance(both.get(key), dict) and isinstance(value, dict)
        both[key] = merged(both[key], value) if nested else value
    both.pop("extends", None)
    return both


#: Key of an entry, the name that it has there, and the names that there are.
_Reference = tuple[str, str | None, Collection[str]]


def _dangling(catalog: Catalog) -> Iterator[Finding]:
    """Names that lead nowhere."""
    for (kind, name), path in catalog.files.items():
        for key, wanted, known in _references(catalog.of_kind(kind)[name], catalog):
            if wanted is not None and wanted not in known:
                what = f"no such {key.rpartition('.')[2]}: {wanted!r}"
                yield mistake(f"{path}: {key}", what, suggest(wanted, list(known)))


def _references(entry: Entry, catalog: Catalog) -> Iterator[_Reference]:
    match entry:
        case Image():
            yield from _of_image(entry, catalog)
        case Model():
            yield from (("pairs_with", name, catalog.models) for name in entry.pairs_with)
        case Recipe():
            yield from _of_recipe(entry, catalog)
        case Measurement():
            yield "body", entry.body, catalog.models
            yield "drafter", entry.drafter, catalog.models
            yield "recipe", entry.recipe, catalog.recipes
            yield "image", entry.image, catalog.images
            if entry.image in catalog.images:
                yield "tag", entry.tag, catalog.images[entry.image].tags
        case Advice():
            yield from (
                ("choices.recipe", choice.recipe, catalog.recipes) for choice in entry.choices
            )


def _of_image(image: Image, catalog: Catalog) -> Iterator[_Reference]:
    yield "newest_tag", image.newest_tag, image.tags
    for tag, data in image.tags.items():
        yield f"tags.{tag}.rollback", data.rollback, image.tags
    for issue in image.issues:
        yield from ((f"issues.{issue.id}.tags", tag, image.tags) for tag in issue.tags)
    if image.build:
        yield "build.base", image.build.base, catalog.images


def _of_recipe(recipe: Recipe, catalog: Catalog) -> Iterator[_Reference]:
    yield "image", recipe.image, catalog.images
    if recipe.image in catalog.images:
        known = catalog.images[recipe.image].tags
        yield "tag", recipe.tag, known
        yield from (("tags", tag, known) for tag in recipe.tags)
        yield from (("by_tag", tag, known) for tag in recipe.by_tag)
    yield "body.model", recipe.body.model, catalog.models
    yield "drafter.model", recipe.drafter.model if recipe.drafter else None, catalog.models
