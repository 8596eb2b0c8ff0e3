"""docs/operations.md: every operation and fact, from the sources of both."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from docs.generate.markdown import GENERATED, table

_PACKAGE = Path(__file__).parents[2] / "sparkwright"
_EXAMPLE = "**Example:**"
_ARGUMENT = re.compile(r"^    ([\w, ]+): (.*(?:\n        .*)*)", re.MULTILINE)
_INTRODUCTION = """\
sparkwright's operations and facts work in any deploy of pyinfra's, without a site of sparkwright's.
Import a module of operations as you import pyinfra's: `from sparkwright.operations import models`.
Operations become root by themselves, take the host's lock before their first change, and show what
they would do under `--dry`. They find sparkwright's files on a host by its data: `services_root`
and `models_root` in group_data, where those are not /opt/sparkwright and /opt/models. With
`--data break_lock=True` they take the lock from another run. pyinfra's own arguments (`name`,
`_if`, `_sudo`, ...) work as everywhere. `sparkwright.operations` has what arguments are made of,
such as `Directory`; [examples/deploy.py](examples/deploy.py) is a whole deploy.

Operations and facts on this page are public: within a major version their arguments stay."""


@dataclass(frozen=True)
class Entry:
    """An operation or a fact.

    Attributes:
        arguments: name, type, default and meaning.
        example: Python with its imports, empty where there is none.
    """

    name: str
    description: str
    arguments: tuple[tuple[str, str, str, str], ...] = ()
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
    description, _, meanings = text.partition("Args:\n")
    meaning = {
        argument: _markdown(" ".join(arguments.split()))
        for names, arguments in _ARGUMENT.findall(meanings)
        for argument in names.split(", ")
    }
    positional = node.args.args
    missing: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    defaults = [*missing, *node.args.defaults, *node.args.kw_defaults]
    return Entry(
        name,
        _markdown(description.strip()),
        tuple(
            (
                f"`{argument.arg}`",
                f"`{ast.unparse(argument.annotation)}`" if argument.annotation else "",
                "required" if default is None else f"`{ast.unparse(default)}`",
                meaning.get(argument.arg, ""),
            )
            for argument, default in zip(
                [*positional, *node.args.kwonlyargs], defaults, strict=True
            )
        ),
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
    """Text of a docstring as Markdown."""
    return text.replace("``", "`")


def page() -> str:
    """The whole page."""
    parts = [
        "# Operations and facts",
        GENERATED.format(what="the docstrings in sparkwright/operations and sparkwright/facts"),
        _INTRODUCTION,
        "## Facts",
        "`host.get_fact(NvidiaDriver)` in a deploy, or on the command line:",
        "    pyinfra HOST fact sparkwright.facts.NvidiaDriver",
        table(("fact", "answer"), [(f"`{fact.name}`", fact.description) for fact in facts()]),
    ]
    module = ""
    for entry in operations():
        if entry.name.rpartition(".")[0] != module:
            module = entry.name.rpartition(".")[0]
            parts.append(f"## {module}")
        parts += [f"### {entry.name}", entry.description]
        if entry.arguments:
            parts.append(table(("argument", "type", "default", "meaning"), entry.arguments))
        if entry.example:
            parts.append(f"```python\n{entry.example}\n```")
    return "\n\n".join(parts) + "\n"
