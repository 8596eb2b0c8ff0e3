"""How programs of ``sparkwright/host/`` get to a host: as source, each with what it imports.

A program is a module with a function ``main(request) -> answer``; its annotations say of which
records (``host/contracts``) both are. Nothing has to be installed or put on the host first: the
modules that it needs are found by its own imports.
"""

from __future__ import annotations

import ast
import base64
import inspect
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from sparkwright.host.lib import light_dataclasses, records

_HOST = "sparkwright.host"

#: Makes modules of the sources, in order, with their packages, and prints what main() answers.
_BOOTSTRAP = """
import json, sys, types
if sys.version_info < (3, 10):
    sys.exit("Python %d.%d is too old: 3.10 is needed, as Ubuntu 22.04 and Debian 12 have it"
             % sys.version_info[:2])
def carried(payload):
    for name, source in payload["modules"].items():
        parts = name.split(".")
        for n in range(1, len(parts)):
            package = ".".join(parts[:n])
            if package not in sys.modules:
                sys.modules[package] = types.ModuleType(package)
                sys.modules[package].__path__ = []
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(source, name, "exec"), module.__dict__)
    call = sys.modules["sparkwright.host.lib.records"].call
    json.dump(call(module.main, payload["request"]), sys.stdout)
""".strip()
#: Reads modules and request from standard input: nothing of them is in the host's process list.
BY_STANDARD_INPUT = f"{_BOOTSTRAP}\ncarried(json.load(sys.stdin))"
#: Has them in its own text, compressed: one command that can be run again, without any secret.
_BY_ARGUMENT = (
    f"{_BOOTSTRAP}\nimport base64, zlib\n"
    'carried(json.loads(zlib.decompress(base64.b64decode("{payload}"))))'
)


@cache
def modules(program: ModuleType) -> tuple[ModuleType, ...]:
    """The program's modules in the order of their imports, itself the last."""
    found: dict[str, ModuleType] = {}

    def visit(module: ModuleType) -> None:
        if module.__name__ in found:
            return
        for name in _imports(module):
            visit(import_module(name))
        found[module.__name__] = module

    visit(program)
    return tuple(found.values())


def _imports(module: ModuleType) -> Iterable[str]:
    """Modules of the host's programs that a module imports, also within functions."""
    for node in ast.walk(ast.parse(source(module))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(_HOST):
            continue
        assert node.module is not None
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            # `from package import module`, or `from module import name`
            yield inner if _is_module(inner) else node.module


@cache
def _is_module(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True


@cache
def source(module: ModuleType) -> str:
    """A module's text."""
    return inspect.getsource(module)


@cache
def bare(module: ModuleType) -> str:
    """What is carried of a module's text: a third less to send and to compile for every host."""
    return without_words(source(module))


def without_words(text: str) -> str:
    """A program without docstrings and comments, line by line where it was."""
    lines = text.splitlines()
    tree = ast.parse(text)
    within: set[int] = set()  # lines within a string, which are no comments
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno:
            within.update(range(node.lineno, node.end_lineno))
    for n, line in enumerate(lines):
        if line.lstrip().startswith("#") and n not in within:
            lines[n] = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            assert first.end_lineno
            lines[first.lineno - 1 : first.end_lineno] = [
                f"{' ' * first.col_offset}''",
                *[""] * (first.end_lineno - first.lineno),
            ]
    return "\n".join(lines)


def laid_out(home: str, *programs: ModuleType) -> dict[str, str]:
    """Sources of programs that stay on a host, by path: packages without __init__.py, so that they
    keep the names by which they import each other. ``home`` is what ``sys.path`` needs; where it is
    empty, paths are relative to it."""
    return {
        str(PurePosixPath(home, f"{one.__name__.replace('.', '/')}.py")): source(one)
        for program in programs
        for one in modules(program)
    }


def entry(home: str, program: ModuleType) -> str:
    """Text of a file that runs a program which is laid out below ``home``, with its own words."""
    package, _, name = program.__name__.rpartition(".")
    return (
        f'import sys\nsys.path.insert(0, "{home}")\nfrom {package} import {name}\n'
        f"sys.exit({name}.main(*sys.argv[1:]))\n"
    )


def payload(program: ModuleType, request: Mapping[str, Any]) -> str:
    """What the bootstrap reads: the modules in import order and the program's encoded request."""
    needed = dict.fromkeys([*modules(records), *modules(program)])
    sources = {"dataclasses": bare(light_dataclasses)}
    sources |= {module.__name__: bare(module) for module in needed}
    return json.dumps({"modules": sources, "request": dict(request)})


def argument(program: ModuleType, request: Mapping[str, Any]) -> str:
    """The same as a whole Python text, for ``python3 -c``. Never with a secret in the request."""
    packed = base64.b64encode(zlib.compress(payload(program, request).encode(), 9)).decode()
    return _BY_ARGUMENT.replace("{payload}", packed)
