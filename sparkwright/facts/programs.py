"""How programs of ``sparkwright/host/`` get to a host: as source, each with what it imports.

A program is a module with a function ``main(request) -> answer``, both plain JSON data. Nothing has
to be installed or put on the host first: the modules that it needs are found by its own imports.
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

_HOST = "sparkwright.host"

#: Makes modules of the sources, in order, with their packages, and prints what main() answers.
_BOOTSTRAP = """
import json, sys, types
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
    json.dump(module.main(payload["request"]), sys.stdout)
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


def laid_out(home: str, *programs: ModuleType) -> dict[str, str]:
    """Sources of programs that stay on a host, by path: packages without __init__.py, so that they
    keep the names by which they import each other. ``home`` is what ``sys.path`` needs; where it is
    empty, paths are relative to it."""
    return {
        str(PurePosixPath(home, f"{one.__name__.replace('.', '/')}.py")): source(one)
        for program in programs
        for one in modules(program)
    }


def payload(program: ModuleType, request: Mapping[str, Any]) -> str:
    """What the bootstrap reads: the modules in import order and the program's request."""
    sources = {module.__name__: source(module) for module in modules(program)}
    return json.dumps({"modules": sources, "request": dict(request)})


def argument(program: ModuleType, request: Mapping[str, Any]) -> str:
    """The same as a whole Python text, for ``python3 -c``. Never with a secret in the request."""
    packed = base64.b64encode(zlib.compress(payload(program, request).encode(), 9)).decode()
    return _BY_ARGUMENT.replace("{payload}", packed)
