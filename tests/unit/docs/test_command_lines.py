"""The program accepts every command line on a page."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

import click
import pytest

from sparkwright.cli import main
from tests.tables import Tables
from tests.unit.docs.markdown import NAMES, ROOT, Page, page, read

TABLES = Tables(__file__)

_PROGRAMS = ("sparkwright", "pyinfra", "make", "python", "python3")
REFUSED = TABLES.data["REFUSED"]
ACCEPTED = TABLES.data["ACCEPTED"]
#: Program that parses command lines of pyinfra, in a separate process since importing pyinfra
#: patches the interpreter.
_PYINFRA = """
import json, sys
import click
from pyinfra_cli.cli import cli
said = {}
for line in json.load(sys.stdin):
    try:
        cli.make_context("pyinfra", json.loads(line))
    except click.UsageError as error:
        said[line] = error.format_message()
json.dump(said, sys.stdout)
"""


def command_lines(lines: Sequence[str]) -> list[list[str]]:
    """The words of every sparkwright command in lines of code."""
    result = []
    for line in lines:
        line = line.removeprefix("$ ")
        if re.match(rf"(\w+=\S+ )*({'|'.join(_PROGRAMS)})( |$)", line) or "&& sparkwright" in line:
            result += [
                command for command in _commands(line) if command and command[0] in _PROGRAMS
            ]
    # A span of one word is a name: `sparkwright`, `make`.
    return [arguments for arguments in result if len(arguments) > 1]


def _commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    arguments: list[str] = []
    redirected = False
    for word in lexer:
        if set(word) <= set("|&;()"):
            yield arguments
            arguments, redirected = [], False
        elif set(word) <= set("<>"):
            redirected = True
        elif not redirected and (arguments or not re.fullmatch(r"\w+=.*", word)):
            arguments.append(word)
    yield arguments


def mistakes(shown: Page) -> list[str]:
    """Invalid command lines of a page, with the reason."""
    result = []
    lines = [(line, False) for line in command_lines(shown.code)]
    lines += [(line, True) for line in command_lines(shown.spans)]
    for arguments, mentioned in lines:
        reason = None
        match arguments[0]:
            case "sparkwright":
                reason = _refused(arguments[1:], mentioned=mentioned)
            case "pyinfra":
                reason = _refused_by_pyinfra(arguments[1:]) or _not_there(arguments[1:], shown)
            case "make":
                targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
                gone = [word for word in arguments[1:] if "=" not in word and word not in targets]
                reason = f"no such target: {gone}" if gone else None
            case _:
                if arguments[1] == "-m" and importlib.util.find_spec(arguments[2]) is None:
                    reason = "no such module"
        if reason:
            result.append(f"{shlex.join(arguments)}: {reason}")
    return result


def _refused(arguments: Sequence[str], *, mentioned: bool) -> str | None:
    """Errors of click about a command line of sparkwright.

    Args:
        mentioned: whether the command is in running text, where its arguments may be missing.
    """
    command: click.Command = main
    context = click.Context(main, info_name="sparkwright")
    rest = list(arguments)
    while isinstance(command, click.Group):
        if rest[:1] in (["--help"], ["--version"]):
            return None
        below = command.get_command(context, rest[0]) if rest else None
        if below is None:
            return "no such command"
        command, rest = below, rest[1:]
    try:
        command.make_context(command.name, [word for word in rest if word != "--help"])
    except (click.MissingParameter, click.BadOptionUsage) as error:
        return None if mentioned else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


def _refused_by_pyinfra(arguments: list[str]) -> str | None:
    line = json.dumps(arguments)
    expected = _of_all_pages()
    return expected[line] if line in expected else _parsed([line])[line]


@cache
def _of_all_pages() -> dict[str, str | None]:
    pages = [read(name) for name in NAMES]
    shown = [line for item in pages for line in (*item.code, *item.spans)]
    lines = command_lines([*shown, *REFUSED, *ACCEPTED])
    return _parsed([json.dumps(line[1:]) for line in lines if line[0] == "pyinfra"])


def _parsed(lines: list[str]) -> dict[str, str | None]:
    """Error of pyinfra about each command line; None if it is accepted."""
    arguments = [sys.executable, "-c", _PYINFRA]
    done = subprocess.run(
        arguments, input=json.dumps(lines), capture_output=True, text=True, check=True
    )
    return {**dict.fromkeys(lines), **json.loads(done.stdout)}


def _not_there(arguments: Sequence[str], shown: Page) -> str | None:
    """Name in a pyinfra command line that does not exist and that the page does not create."""
    for word in arguments:
        if re.fullmatch(r"[\w/-]+\.py", word):
            if not (ROOT / word).exists() and f"> {word}" not in shown.text:
                return f"no such file: {word}"
        elif re.fullmatch(r"roles(\.\w+){2,}", word):
            module, _, function = word.rpartition(".")
            path = ROOT / module.replace(".", "/")
            file = next((f for f in (path / "__init__.py", path.with_suffix(".py"))
                         if f.exists()), None)  # fmt: skip
            defined = _functions(file.read_text(encoding="utf-8")) if file else set()
            if function not in defined and f"from {module} import {function}" not in shown.text:
                return f"no such operation: {word}"
    return None


def _functions(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_line_is_accepted(name: str) -> None:
    assert mistakes(read(name)) == []


def test_the_main_commands_are_among_the_checked_commands() -> None:
    lines = {shlex.join(line) for line in command_lines(read("README.md").code)}
    assert {"sparkwright up me@my-spark.local", "make demo", "make test"} <= lines


@pytest.mark.parametrize("line", REFUSED)
def test_refused_command_lines_are_found(line: str) -> None:
    assert len(mistakes(page(f"    {line}\n"))) == 1
    assert len(mistakes(page(f"as in `{line}`"))) == 1
