"""Lists of operations and facts in docs/writing-a-role.md, from their source code."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

_PACKAGE = Path(__file__).parents[2] / "sparkwright"
_EXAMPLE = "**Example:**"


@dataclass(frozen=True)
class Entry:
    """An operation or a fact.

    Attributes:
        arguments: names of an operation's arguments.
        example: Python with its imports, empty without an example.
    """

    name: str
    description: str
    arguments: tuple[str, ...] = ()
    example: str = ""


def operations() -> Iterator[Entry]:
    """Every operation, by module and in the order of the source."""
    root = _PACKAGE / "operations"
    for file in sorted(root.rglob("*.py")):
        module = ".".join(file.relative_to(root).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(decorator).startswith("operation(") for decorator in node.decorator_list
            ):
                yield _operation(f"{module}.{node.name}", node)


def facts() -> Iterator[Entry]:
    """Every fact that sparkwright.facts exports."""
    exports = (_PACKAGE / "facts/__init__.py").read_text(encoding="utf-8")
    names = set(re.findall(r" as ([A-Z]\w+)", exports))
    for file in sorted((_PACKAGE / "facts").glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in names:
                description = (ast.get_docstring(node) or "").partition("\n\n")[0]
                yield Entry(node.name, _markdown(description))


def _operation(name: str, node: ast.FunctionDef) -> Entry:
    text, _, example = (ast.get_docstring(node) or "").partition(_EXAMPLE)
    arguments = [*node.args.args, *node.args.kwonlyargs]
    return Entry(
        name,
        _markdown(text.partition("Args:\n")[0].strip()),
        tuple(argument.arg for argument in arguments),
        _example(name, dedent(example.replace(".. code:: python", "")).strip()),
    )


def _example(name: str, code: str) -> str:
    """An example with the import of its operation."""
    package = ".".join(["sparkwright.operations", *name.split(".")[:-2]])
    module = name.split(".")[-2]
    imports = f"from {package} import {module}\n"
    if not code or imports in code:
        return code
    return imports + ("" if code.startswith("from ") else "\n") + code


def _markdown(text: str) -> str:
    """Convert a docstring's text to Markdown."""
    return text.replace("``", "`")


def part() -> str:
    """Lists of operations and facts, with the first sentence of an operation's docstring."""
    operation = (
        f"- `{entry.name}({', '.join(entry.arguments)})`: {_sentence(entry)}"
        for entry in operations()
    )
    fact = (f"- `{entry.name}`: {' '.join(entry.description.split())}" for entry in facts())
    return "\n".join(["### Operations", "", *operation, "", "### Facts", "", *fact])


def _sentence(entry: Entry) -> str:
    """The first sentence of a docstring."""
    return " ".join(re.split(r"(?<=\.)\s", entry.description, maxsplit=1)[0].split())
