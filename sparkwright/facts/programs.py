"""Send programs of ``sparkwright/host/`` to a host as source, each with the modules that it
imports.

A program is a module with a function ``main(request) -> answer``, whose annotations name both
records. Nothing has to be installed on the host first: the program's own imports determine the
modules to send.
"""

import base64
import inspect
import json
import re
import zlib
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from sparkwright.host.lib import light_dataclasses, records

_IMPORT = re.compile(r"^ *from (sparkwright\.host[\w.]*) import ([\w ,]+|\([^)]*\))", re.MULTILINE)
#: A docstring, a comment's line, or another string of several lines. The last kind begins within a
#: line, and is matched so that its lines do not count as comments.
_WORDS = re.compile(
    r'^(?P<docstring> *)"""[\s\S]*?"""|^ *#.*$|^ *[^\s"#][^"\n]*"""[\s\S]*?"""', re.MULTILINE
)

#: Lines before and after an answer: a login's start-up files may print something, too. JSON has no
#: line break inside, so that no part of an answer looks like these lines.
BEGIN, END = "== sparkwright answers ==", "== end of the answer =="
#: Code that loads the sources as modules, in order and with their packages, and prints the answer
#: of main().
_BOOTSTRAP = f"""
import json, os, sys, types
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
    try:
        answer = json.dumps(call(module.main, payload["request"]))
    except NotADirectoryError as error:
        sys.exit("%s is not a directory: move it away, or choose another path" % error.filename)
    print("\\n{BEGIN}", answer, "{END}", sep="\\n", flush=True)
    os._exit(0)  # nothing is left to put in order, and the controller waits for the end
""".strip()
#: Program that reads modules and request from the last line of standard input, so that the host's
#: process list does not show them. If sudo did not read its password, the password is an earlier
#: line.
BY_STANDARD_INPUT = f"{_BOOTSTRAP}\ncarried(json.loads(sys.stdin.read().splitlines()[-1]))"
#: Program with modules and request in its own text, compressed: the command can be run again, and
#: contains no secret.
_BY_ARGUMENT = (
    f"{_BOOTSTRAP}\nimport base64, zlib\n"
    'carried(json.loads(zlib.decompress(base64.b64decode("{payload}"))))'
)


@cache
def modules(program: ModuleType) -> tuple[ModuleType, ...]:
    """The program's modules in the order of their imports; the program itself comes last."""
    module_types: dict[str, ModuleType] = {}

    def visit(module: ModuleType) -> None:
        if module.__name__ in module_types:
            return
        for name in _imports(module):
            visit(import_module(name))
        module_types[module.__name__] = module

    visit(program)
    return tuple(module_types.values())


def _imports(module: ModuleType) -> Iterable[str]:
    """Modules of the host's programs that a module imports, also within functions."""
    # A pattern finds the imports, since parsing the modules takes 60 ms in every run. A test
    # compares with the parser.
    for package, names in _IMPORT.findall(source(module)):
        # `from package import module`, or `from module import name`
        is_package = hasattr(import_module(package), "__path__")
        for alias in names.strip("() \n").split(","):
            if name := alias.partition(" as ")[0].strip():
                yield f"{package}.{name}" if is_package else package


@cache
def source(module: ModuleType) -> str:
    """A module's text."""
    return inspect.getsource(module)


@cache
def bare(module: ModuleType) -> str:
    """A module's text without docstrings and comments, with unchanged line numbers: a third less
    to send and to compile for every host.
    """

    def emptied(match: re.Match[str]) -> str:
        text = match[0]
        if (indent := match["docstring"]) is not None:
            return f"{indent}''" + "\n" * text.count("\n")
        return "" if text.lstrip().startswith("#") else text

    return _WORDS.sub(emptied, source(module))


def laid_out(home: str, *programs: ModuleType) -> dict[str, str]:
    """Return the sources of programs that stay on a host, by path: packages without __init__.py, so
    that modules keep their import names. ``home`` is the programs' root for ``sys.path``; with an
    empty ``home``, the paths are relative.
    """
    return {
        str(PurePosixPath(home, f"{module.__name__.replace('.', '/')}.py")): source(module)
        for program in programs
        for module in modules(program)
    }


def entry(home: str, program: ModuleType) -> str:
    """Return the text of a file that runs a program below ``home`` with its own arguments."""
    package, _, name = program.__name__.rpartition(".")
    return (
        f'import sys\nsys.path.insert(0, "{home}")\nfrom {package} import {name}\n'
        f"sys.exit({name}.main(*sys.argv[1:]))\n"
    )


@cache
def _sources(program: ModuleType) -> str:
    """The modules in import order, as the beginning of a JSON object."""
    needed = dict.fromkeys([*modules(records), *modules(program)])
    sources = {"dataclasses": bare(light_dataclasses)} | {m.__name__: bare(m) for m in needed}
    return f'{{"modules": {json.dumps(sources)}, "request": '


def payload(program: ModuleType, request: object) -> str:
    """Input of the bootstrap: the program's modules and its encoded request."""
    return f"{_sources(program)}{json.dumps(request)}}}"


@cache
def _compressed(program: ModuleType) -> tuple[bytes, Any]:
    """The compressed modules, and the compressor for a request: 2 ms, once for all hosts."""
    # Level 9 takes twice as long, and saves 0.5 % of the sent bytes.
    begun = zlib.compressobj()
    return begun.compress(_sources(program).encode()), begun


def argument(program: ModuleType, request: object) -> str:
    """The program and its request as one Python text, for ``python3 -c``.

    The request must not contain a secret.
    """
    first, begun = _compressed(program)
    own = begun.copy()
    whole = first + own.compress(f"{json.dumps(request)}}}".encode()) + own.flush()
    return _BY_ARGUMENT.replace("{payload}", base64.b64encode(whole).decode())
