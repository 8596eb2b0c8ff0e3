"""Rules of the tree: names of files, and folders with one kind of code."""

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
#: Names that a tool gives.
GIVEN = {"__init__.py", "__main__.py", "conftest.py", "deploy.py"}


def sources(*paths: str) -> list[str]:
    """Python files of the tree that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *paths]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listing.stdout.splitlines() if (ROOT / name).suffix == ".py"]


def test_no_more_than_two_python_files_have_one_name() -> None:
    places = defaultdict(set)
    for path in sources(":!*/fixtures/*"):
        if (ROOT / path).name not in GIVEN and (ROOT / path).exists():
            parallel = (pattern for pattern in PARALLEL if re.match(pattern, path))
            places[Path(path).name].add(next(parallel, path))
    assert {name: files for name, files in places.items() if len(files) > 2} == {}


def test_each_module_of_operations_has_an_operation() -> None:
    operations = sources("sparkwright/operations", ":!*/lib/*", ":!*/__init__.py")
    assert [name for name in operations if "@operation()" not in (ROOT / name).read_text()] == []
