"""Host programs are sent without docstrings, with unchanged code that is found without a parser.

``sparkwright/facts/programs.py`` reads the programs by regular expressions, which is quick; this
test compares each module with the result of Python's own parser.
"""

import ast
import sys
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import sparkwright.host
from sparkwright.facts import programs
from tests.unit.builders import ROOT

_PACKAGE = "sparkwright.host"
#: Programs of extras are in their folders.
EXTRAS = [
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted((ROOT / "sparkwright/extras").rglob("*.py"))
    if "\ndef main(request: " in path.read_text()
]
MODULES = [
    import_module(package.name)
    for package in walk_packages(sparkwright.host.__path__, f"{_PACKAGE}.")
    if not package.ispkg
] + EXTRAS


def _name(module: ModuleType) -> str:
    return module.__name__.removeprefix(f"{_PACKAGE}.")


each = pytest.mark.parametrize("module", MODULES, ids=_name)


def _code(text: str) -> tuple[str, list[tuple[str, int]], bool]:
    """Code of a text, the lines of its statements, and whether the text has docstrings; docstrings
    and other strings as statements count as empty.
    """
    tree, documented = ast.parse(text), False
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented |= bool(node.value.value)
            node.value = ast.Constant("")
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return ast.dump(tree), [(type(node).__name__, node.lineno) for node in statements], documented


def test_every_program_is_compared() -> None:
    names = {_name(module) for module in MODULES}
    assert {"observe", "switch", "lib.records", "jobs", "fetch.fetch"} <= names


@each
def test_the_sent_code_is_equal_line_by_line(module: ModuleType) -> None:
    whole, sent = programs.source(module), programs.bare(module)
    code, lines, documented = _code(sent)
    assert (code, lines) == _code(whole)[:2]
    assert not documented
    assert sent.count("\n") == whole.count("\n")
    order = [item.__name__ for item in programs.modules(module)]
    assert order[-1] == module.__name__
    for n, entry in enumerate(programs.modules(module)):
        assert set(programs._imports(entry)) <= set(order[:n])


@each
def test_found_imports_equal_the_imports_of_the_parser(module: ModuleType) -> None:
    """Imports may be within functions, of several names, over several lines, and renamed."""
    result = set()
    for node in ast.walk(ast.parse(programs.source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                result.add(inner if inner in sys.modules else node.module)
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("sparkwright") for alias in node.names)
        # Hosts' light dataclasses make no methods. RangeFetch changes, and its module is never
        # carried.
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
            taken = any(alias.name == "dataclass" for alias in node.names)
            assert not taken or _name(module) in ("lib.records", "fetch.ranges")
    assert set(programs._imports(module)) == result


@pytest.mark.parametrize("module", EXTRAS, ids=_name)
def test_a_program_of_an_extra_imports_the_standard_library_and_programs_of_hosts(
    module: ModuleType,
) -> None:
    for node in ast.walk(ast.parse(programs.source(module))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            own = name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
            assert own or name.partition(".")[0] in sys.stdlib_module_names
