"""docs/json.md: what every command prints with --json, from the types in sparkwright/cli."""

from typing import Any

from pydantic import TypeAdapter

from docs.generate.commands import commands
from docs.generate.documents import PYINFRAS, documents
from docs.generate.markdown import GENERATED, table
from docs.generate.schema import in_words
from sparkwright.catalog.reader import documented

_INTRODUCTION = """\
Every command that prints has `--json`: one document on standard output, and nothing else there;
messages go to standard error, and the exit code is the same as without it. A key that stands here
keeps its name and its meaning; others may be added, so pass over what you do not know. Times
without a unit in their name are seconds; of a host, since the epoch by the host's own clock. What
hosts say is escaped, so that no terminal obeys it.

`check`, `doctor` and `smoke` print SARIF with `--format sarif`, for editors and code scanners.

`{pyinfra}` become pyinfra, and print pyinfra's own document (its
`--json`): `plan`, and `results` where anything was done."""


def schema(message: str) -> Any:
    """The JSON Schema of what a command prints."""
    return TypeAdapter(documents()[message]).json_schema(mode="serialization")


def page() -> str:
    """The whole page."""
    pyinfra = "`, `".join(PYINFRAS)
    types: dict[str, Any] = {}
    rows = []
    for arguments, _, _ in commands():
        if arguments in documents():
            result = schema(arguments)
            types |= result.get("$defs", {})
            if "title" in result and "properties" in result:
                types[result["title"]] = result
                rows.append((f"`{arguments}`", f"[{result['title']}](#{result['title'].lower()})"))
            else:
                rows.append((f"`{arguments}`", in_words(result)))
    parts = [
        "# JSON",
        GENERATED.format(what="the types that docs/generate/documents.py and extras name"),
    ]
    parts += [_INTRODUCTION.format(pyinfra=pyinfra), "## Commands"]
    parts += [table(("command", "document"), rows), "## Types"]
    parts += [_type(name, types[name]) for name in sorted(types)]
    return "\n\n".join(parts) + "\n"


def _type(name: str, findings: Any) -> str:
    summary, message = documented(findings.get("description", ""))
    if "properties" not in findings:
        return f"### {name}\n\n{in_words(findings)}"
    rows = [
        (f"`{key}`", in_words(field), message.get(key, ""))
        for key, field in findings["properties"].items()
    ]
    text = table(("key", "type", "meaning"), rows)
    return "\n\n".join(filter(None, (f"### {name}", summary, text)))
