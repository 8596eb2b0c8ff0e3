"""Rules of the tree: names of files, folders with one kind of code, and engines by name."""

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Folders that are parallel by design: their files may have the same names.
PARALLEL = (
    r"sparkwright/engines/\w+/",
    r"sparkwright/extras/",
    r"sparkwright/(facts|operations|host|cli)/",
    r"sparkwright/checks/\w+/facts\.py",
)
#: Code that may name the default engine: the engine's package, readers of its recipes, the catalog
#: and its table of GPUs, and the salt of every host's key.
ENGINE_NAMED = (
    "sparkwright/engines/", "sparkwright/recipes/", "sparkwright/extras/imports/",
    "sparkwright/catalog/", "sparkwright/config/keys.py",
)  # fmt: skip
#: YAML files of prose, which may name the default engine, too.
PROSE = r".*(checks|causes|measures|messages|validation)\.yaml"
#: Files whose names a tool prescribes.
GIVEN = (":!*__init__.py", ":!*__main__.py", ":!*conftest.py", ":!*deploy.py")


def sources(*paths: str, suffix: str = ".py") -> list[str]:
    """Files of the tree that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *paths]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = listing.stdout.splitlines()
    return [name for name in names if name.endswith(suffix) and (ROOT / name).exists()]


def code(text: str) -> str:
    """Python without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ...
    return ast.unparse(tree)


def test_no_more_than_two_python_files_have_one_name() -> None:
    places = defaultdict(set)
    for path in sources(":!*/fixtures/*", *GIVEN):
        parallel = (pattern for pattern in PARALLEL if re.match(pattern, path))
        places[Path(path).name].add(next(parallel, path))
    assert {name: files for name, files in places.items() if len(files) > 2} == {}


def test_each_module_of_operations_has_an_operation() -> None:
    operations = sources("sparkwright/operations", ":!*/lib/*", ":!*/__init__.py")
    assert [name for name in operations if "@operation()" not in (ROOT / name).read_text()] == []


def test_code_outside_engines_names_no_engine() -> None:
    texts = {name: code((ROOT / name).read_text()) for name in sources("sparkwright")}
    for name in sources("sparkwright", suffix=".yaml"):
        if not re.fullmatch(PROSE, name):
            texts[name] = re.sub(r"#.*", "", (ROOT / name).read_text())
    named = [name for name, text in texts.items() if re.search(r"vllm", text, re.I)]
    assert [name for name in named if not name.startswith(ENGINE_NAMED)] == []
