"""Reader of the catalog's YAML files.

One file is one entry; its ``kind`` names the type. Folders named ``files`` hold files of
containers. Later directories override or extend entries of earlier directories by name, so a user's
own catalog needs no change in the library.

Editors get a JSON Schema of every kind of entry, from the types and their docstrings.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sparkwright.catalog.advice import Advice
from sparkwright.catalog.causes import Causes
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.catalog.measurements import Measurement
from sparkwright.documents.bounds import Unusable
from sparkwright.documents.parsed_yaml import ParsedFiles
from sparkwright.findings import user_error, validation
from sparkwright.findings.finding import Finding
from sparkwright.host.lib.records import dataclass, field
from sparkwright.text.shipped_yaml import beside

KINDS: dict[str, type[BaseModel]] = {
    "recipe": Recipe, "model": Model, "image": Image, "measurement": Measurement,
    "advice": Advice, "causes": Causes,
}  # fmt: skip
#: Meanings of keys that several types share, for docstrings that lack them.
COMMON = {
    "kind": "type of the file's entry",
    "name": "name of the entry in other entries, settings and commands",
    "title": "description in one line",
    "source": "source of the entry: a card with the section, or your own measurement",
    "date": "day of the source: the newer of two conflicting sources counts",
    "why": "the reason",
}
_WORDS = {
    "array": "a list", "object": "a mapping", "integer": "a whole number", "number": "a number",
}  # fmt: skip
EXTENDS = (
    "true: extend the entry of the same name in an earlier catalog; a name: extend that entry, "
    "under a new name. Mappings are merged key by key, and all other values are replaced"
)


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind; an entry that extends another entry has no required keys."""
    result = KINDS[kind].model_json_schema()
    for item in (result, *result.get("$defs", {}).values()):
        describe(item)
    result["properties"]["extends"] = {
        "description": EXTENDS, "anyOf": [{"const": True}, {"type": "string"}],
    }  # fmt: skip
    needed = result.pop("required")
    result["required"] = ["kind", "name"]
    result["if"] = {"required": ["extends"]}
    result["else"] = {"required": needed}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **result}


def describe(part: dict[str, Any]) -> None:
    """Give each key of a schema the text from its type's docstring."""
    summary, text = documented(part.get("description", ""))
    part["description"] = summary
    for key, value in part.get("properties", {}).items():
        meaning = text.get(key) or COMMON.get(key)
        if meaning:
            value["description"] = meaning


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text and its ``Attributes`` by name."""
    text, _, attributes = docstring.partition("Attributes:\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in attributes.splitlines():
        begun = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if begun:
            names = begun[1].split(", ")
            texts |= dict.fromkeys(names, begun[2])
        else:
            texts |= {name: f"{texts[name]} {line.strip()}".strip() for name in names}
    return _markdown(text), {name: _markdown(arguments) for name, arguments in texts.items()}


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def allowed(kind: str, path: tuple[str, ...]) -> str:
    """Allowed values of a key, in a few words; empty if any value of its type is allowed."""
    whole = KINDS[kind].model_json_schema()
    result: Any = whole
    for part in path:
        result = _inner(result, whole).get("properties", {}).get(part)
        if result is None:
            return ""
    result = _inner(result, whole)
    if "const" in result:
        return str(result["const"])
    if "enum" in result:
        return ", ".join(map(str, result["enum"]))
    if "properties" in result:
        return f"a mapping with {', '.join(result.get('required', result['properties']))}"
    return _WORDS.get(str(result.get("type")), str(result.get("format", "")))


def _inner(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Resolve a reference, or the only type beside null."""
    some = [item for item in part.get("anyOf", []) if item.get("type") != "null"]
    if len(some) == 1:
        part = some[0]
    if "$ref" in part:
        target: dict[str, Any] = whole["$defs"][part["$ref"].rpartition("/")[2]]
        return target
    return part


Entry = Image | Model | Recipe | Measurement | Advice | Causes
#: Kind and name of an entry.
Key = tuple[str, str]
#: Top-level key of an entry -> the file that wrote its value.
Writers = dict[str, Path]
#: A file, and its content with everything that it extends under the same name.
Read = tuple[Path, dict[str, Any], Writers]


@dataclass(frozen=True)
class Catalog:
    """Every entry by name.

    Attributes:
        files: (kind, name) -> the last file that sets the entry.
        writers: (kind, name) -> the files that wrote the keys of the entry.
    """

    images: dict[str, Image] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    recipes: dict[str, Recipe] = field(default_factory=dict)
    measurements: dict[str, Measurement] = field(default_factory=dict)
    advice: dict[str, Advice] = field(default_factory=dict)
    causes: dict[str, Causes] = field(default_factory=dict)
    files: dict[Key, Path] = field(default_factory=dict)
    writers: dict[Key, Writers] = field(default_factory=dict)

    def writer(self, recipe: str, key: str) -> Path | None:
        """Return the file that wrote a key of a recipe; None for a recipe without a file."""
        entry = ("recipe", recipe)
        return self.writers.get(entry, {}).get(key) or self.files.get(entry)

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Entries of a kind, by name."""
        name = kind if kind in ("advice", "causes") else f"{kind}s"
        entries: dict[str, Any] = getattr(self, name)
        return entries

    def every(self) -> Iterator[tuple[str, str, Any]]:
        """Every entry, with its kind and name."""
        for kind in KINDS:
            yield from ((kind, name, entry) for name, entry in self.of_kind(kind).items())


_MESSAGES = user_error.Messages(__file__)
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def load_catalog(directories: Sequence[Path]) -> Catalog:
    """Read every ``*.yaml`` below the directories and check that every name has an entry.

    Raises:
        UserError: a file has a problem; the message names every problem of every file.
    """
    raw: dict[Key, Read] = {}
    problems, files = user_error.Problems(), ParsedFiles()
    for directory in directories:
        problems += _read_directory(directory, raw, files)
    files.keep()
    catalog = Catalog()
    for key, (path, _, _) in raw.items():
        whole = _whole(key, raw, (), problems)
        if whole is None:
            continue
        data, catalog.writers[key] = whole
        try:
            entry = _ENTRY.validate_python(data)
        except ValidationError as error:
            may = partial(allowed, key[0]) if key[0] in KINDS else None
            problems += validation.problems_of(error, str(path), tagged=True, allowed=may)
        else:
            catalog.of_kind(entry.kind)[entry.name] = entry
            catalog.files[key] = path
    if not problems:  # an unreadable entry would also be reported as missing
        problems += _dangling(catalog)
    problems.stop()
    return catalog


def validated(data: dict[str, Any], where: str) -> Entry:
    """Validate the data of an entry.

    Args:
        where: the file, for messages.

    Raises:
        UserError: the catalog has a problem; the message names every problem.
    """
    try:
        return _ENTRY.validate_python(data)
    except ValidationError as error:
        raise user_error.UserError(validation.problems_of(error, where, tagged=True)) from None


def _read_directory(directory: Path, raw: dict[Key, Read], files: ParsedFiles) -> Iterator[Finding]:
    """Add a directory's entries to earlier entries, and yield problems of its files."""
    if not directory.is_dir():
        yield _MESSAGES.mistake("no-directory", str(directory))
    for path in sorted(directory.rglob("*.yml")):
        yield _MESSAGES.mistake("wrong-suffix", str(path), stem=path.stem)
    own: dict[Key, Path] = {}
    for path in sorted(directory.rglob("*.yaml")):
        if "files" in path.relative_to(directory).parts:
            continue  # these files are not entries
        try:
            data = _mapping(files, path)
        except Unusable as error:
            yield user_error.mistake(error.place(str(path)), error.fault, error.remedy)
            continue
        key = str(data.get("kind")), str(data.get("name"))
        facts = {"kind": key[0], "name": key[1]}
        if key in own:
            yield _MESSAGES.mistake("same-name", f"{path}: name", other=own[key], **facts)
            continue
        own[key] = path
        writers = dict.fromkeys(data, path)
        if data.get("extends") is not True:
            raw[key] = path, data, writers
        elif key in raw:
            raw[key] = path, merged(raw[key][1], data), raw[key][2] | writers
        else:
            yield _MESSAGES.mistake("nothing-to-extend", f"{path}: extends", **facts)


def _mapping(files: ParsedFiles, path: Path) -> dict[str, Any]:
    data = files.load(path)
    if not isinstance(data, dict):
        raise Unusable("not a mapping of keys to values", "start with 'kind: ...'")
    return {str(key): value for key, value in data.items()}


def _whole(
    key: Key, raw: Mapping[Key, Read], within: tuple[Key, ...], problems: user_error.Problems
) -> tuple[dict[str, Any], Writers] | None:
    """Merge an entry over the entry that it extends; None if the extended entry does not exist."""
    path, data, writers = raw[key]
    base = data.get("extends")
    if not isinstance(base, str):
        return data, writers
    other = (key[0], base)
    where = f"{path}: extends"
    if other in (*within, key):
        problems.append(_MESSAGES.mistake("circle", where, base=base))
        return None
    if other not in raw:
        near = user_error.suggest(base, [name for kind, name in raw if kind == key[0]])
        facts = {"kind": key[0], "name": base, "near": near}
        problems.append(_MESSAGES.mistake("no-such-entry", where, **facts))
        return None
    under = _whole(other, raw, (*within, key), problems)
    return None if under is None else (merged(under[0], data), under[1] | writers)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key; other values are replaced, and ``extends`` is left out."""
    both = dict(base)
    for key, value in over.items():
        nested = isinstance(both.get(key), dict) and isinstance(value, dict)
        both[key] = merged(both[key], value) if nested else value
    both.pop("extends", None)
    return both


#: Kind -> key that names other entries, or tags of the image -> path of the names.
_REFERENCES: dict[str, dict[str, str]] = beside(__file__, "references.yaml")


def _dangling(catalog: Catalog) -> Iterator[Finding]:
    """Report names without an entry."""
    for (kind, name), path in catalog.files.items():
        entry = catalog.of_kind(kind)[name]
        image = entry if kind == "image" else catalog.images.get(getattr(entry, "image", ""))
        for key, group in _REFERENCES.get(kind, {}).items():
            names: Collection[str] | None = getattr(
                image if group == "tags" else catalog, group, None
            )
            for where, wanted in _names(entry, key.split("."), ""):
                if names is not None and wanted not in names:
                    facts = {"kind": key.rpartition(".")[2], "name": wanted}
                    near = user_error.suggest(wanted, list(names))
                    yield _MESSAGES.mistake("no-such-entry", f"{path}: {where}", near=near, **facts)


def _names(value: Any, keys: Sequence[str], where: str) -> Iterator[tuple[str, str]]:
    """Names at a key, each with its path; the keys of a mapping count as names."""
    if not keys:
        listed = [value] if isinstance(value, str) else value or ()
        yield from ((where.removeprefix("."), name) for name in listed)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _names(item, keys, f"{where}.{name}")
    elif isinstance(value, tuple):
        for item in value:
            yield from _names(item, keys, f"{where}.{item.id}" if hasattr(item, "id") else where)
    elif value is not None:
        yield from _names(getattr(value, keys[0]), keys[1:], f"{where}.{keys[0]}")
