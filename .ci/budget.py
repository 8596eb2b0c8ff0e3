"""The budget of code: lines by package and lengths of functions, compared with .ci/budget.toml.

    python .ci/budget.py            # exits with 1 and lists counts over their ceilings
    python .ci/budget.py --tighten  # makes the present counts the ceilings

A line of code holds a token besides comments and docstrings. In the installed packages, files of
other languages count too, except data.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Trees whose folders are counted separately, and trees that are counted as a whole.
BY_FOLDER = ("sparkwright", "tests")
WHOLE = ("roles", "lab", "benchmarks", "docs")
#: Trees in which files of other languages count, and suffixes of data, which does not.
INSTALLED = ("sparkwright/", "roles/")
DATA = (".json", ".yaml", ".txt", ".in", ".typed")
_HEAD = """\
# Ceilings of code, held by `make check` (.ci/budget.py). Their sum is the ceiling of the whole:
# new code pays by removing other code. A commit that raises a ceiling gives its reason.

"""


@dataclass(frozen=True)
class Budget:
    """Ceilings, or present counts: lines by package, and lengths of longer functions."""

    lines: Mapping[str, int]
    longest: int
    longer: Mapping[str, int]

    @classmethod
    def read(cls, file: Path) -> Budget:
        """Read ceilings from a file."""
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        functions = data["functions"]
        return cls(data["lines"], functions["longest"], functions.get("longer", {}))

    def text(self) -> str:
        """Text of a file of ceilings."""
        lines = "".join(f'"{package}" = {count}\n' for package, count in sorted(self.lines.items()))
        longer = "".join(f'"{name}" = {count}\n' for name, count in sorted(self.longer.items()))
        return (
            f"{_HEAD}[lines]\n{lines}\n[functions]\nlongest = {self.longest}\n"
            + "\n# Functions that are still longer.\n[functions.longer]\n" * bool(longer)
            + longer
        )


def count(root: Path, files: Iterable[str], longest: int) -> Budget:
    """Count lines by package, and find functions longer than `longest` lines."""
    lines: Counter[str] = Counter()
    longer: dict[str, int] = {}
    for name in files:
        package, file = package_of(name), root / name
        if package is None or not file.is_file():
            continue
        if file.suffix != ".py":
            if name.startswith(INSTALLED) and not name.endswith(DATA):
                text = file.read_text(encoding="utf-8")
                lines[package] += sum(bool(line.strip()) for line in text.splitlines())
            continue
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines[package] += code_lines(text, tree)
        for function, length in functions(tree):
            if length > longest:
                longer[f"{name}:{function}"] = length
    return Budget(lines, longest, longer)


def package_of(name: str) -> str | None:
    """The package that a file counts for: `sparkwright/plan`, `tests/unit`, `lab`."""
    parts = name.split("/")
    if parts[0] in WHOLE:
        return parts[0]
    if parts[0] in BY_FOLDER:
        return "/".join(parts[: 2 if len(parts) > 2 else 1])
    return None


def code_lines(text: str, tree: ast.Module) -> int:
    """Count lines that are neither blank, comment nor docstring."""
    documented = {line for node in ast.walk(tree) for line in _docstring(node)}
    return sum(
        number not in documented and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(text.splitlines(), start=1)
    )


def functions(tree: ast.Module) -> Iterable[tuple[str, int]]:
    """Name and length of every function, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield node.name, node.end_lineno - node.lineno + 1 - len(_docstring(node))


def _docstring(node: ast.AST) -> range:
    """Line numbers of a node's docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return range(0)
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def overruns(present: Budget, ceilings: Budget) -> list[str]:
    """Sentences about every count over its ceiling."""
    over = [
        f"{package}: {lines} lines of code, at most {ceilings.lines[package]}"
        if package in ceilings.lines
        else f"{package}: {lines} lines of code, no ceiling in .ci/budget.toml"
        for package, lines in sorted(present.lines.items())
        if lines > ceilings.lines.get(package, 0)
    ]
    for function, length in sorted(present.longer.items()):
        ceiling = ceilings.longer.get(function, ceilings.longest)
        if length > ceiling:
            over.append(f"{function}: {length} lines, at most {ceiling}")
    return over


def sums(present: Budget, ceilings: Budget) -> str:
    """A table of counts by tree, and their sum."""
    rows = []
    for room, trees in {
        "sparkwright/ and roles/": ("sparkwright", "roles"),
        **{f"{tree}/": (tree,) for tree in ("tests", "lab", "benchmarks", "docs")},
        "all": (*BY_FOLDER, *WHOLE),
    }.items():
        lines, ceiling = (
            sum(value for name, value in budget.lines.items() if name.split("/")[0] in trees)
            for budget in (present, ceilings)
        )
        rows.append(f"{room:<24}{lines:>8,} of {ceiling:,}")
    return "\n".join(rows)


def main() -> int:
    """Compare, or write the present counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tighten", action="store_true", help="make present counts the ceilings")
    file = ROOT / ".ci/budget.toml"
    ceilings = Budget.read(file)
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    present = count(ROOT, listing, ceilings.longest)
    if parser.parse_args().tighten:
        file.write_text(present.text(), encoding="utf-8")
        ceilings = present
    print(sums(present, ceilings))
    over = overruns(present, ceilings)
    if over:
        print("Over the budget of code:", *over, sep="\n  ", file=sys.stderr)
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
