"""Pages docs/json.md and docs/json.schema.json, from the types of the commands' documents."""

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from docs.generate.commands import commands
from docs.generate.documents import PYINFRAS, documents
from docs.generate.markdown import GENERATED, table
from docs.generate.schema import in_words
from sparkwright.catalog.reader import describe

_INTRODUCTION = """\
Every command with output takes `--json`. The command then prints only one document on standard
output. Messages go to standard error, and the exit code is the same as without `--json`.
A JSON key keeps its name and meaning. Later versions may add keys, so ignore unknown keys. Times
without a unit in their name are seconds; times of a host are seconds since the epoch by the host's
own clock. Text from hosts is escaped, so that it can't control a terminal.

These commands run pyinfra, and print pyinfra's own document (`plan`, and `results` if operations
ran): `{pyinfra}`.

[json.schema.json](json.schema.json) has the JSON Schema of each document, with the meaning of
every key: the document of `sparkwright status` is `#/properties/status`, and the types of this
table are in `#/$defs`. A test validates the output of every command against the schema."""


@cache
def _schemas() -> dict[str, Any]:
    """JSON Schema of each command's document, and shared types as ``$defs``."""
    types = documents()
    kinds = [(name, "serialization", TypeAdapter(type_)) for name, type_ in types.items()]
    schemas, shared = TypeAdapter.json_schemas(kinds)  # type: ignore[arg-type]
    return {"properties": {name: schemas[name, "serialization"] for name in types}, **shared}


def schema(command: str) -> Any:
    """The JSON Schema of a command's document."""
    whole = _schemas()
    return {**whole["properties"][command], "$defs": whole["$defs"]}


def schema_file() -> str:
    """Text of docs/json.schema.json."""
    whole = json.loads(json.dumps(_schemas()))
    for part in whole["$defs"].values():
        describe(part)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Documents of sparkwright's commands with --json, by command"}  # fmt: skip
    return json.dumps({**head, **whole}, indent=1, sort_keys=True) + "\n"


def page() -> str:
    """Text of docs/json.md."""
    whole = _schemas()
    rows = []
    for name, _, _ in commands():
        if document := whole["properties"].get(name):
            rows.append((f"`{name}`", in_words(document, _name)))
    return "\n\n".join([
        "# JSON",
        GENERATED.format(source="the types that docs/generate/documents.py and extras name"),
        _INTRODUCTION.format(pyinfra="`, `".join(PYINFRAS)),
        table(("command", "document"), rows),
    ]) + "\n"  # fmt: skip


def _name(type_: str) -> str:
    return f"`{type_}`"
