"""Check the project's prose: sentences without a subject, pronouns without a noun, private words.

    python .ci/prose.py             # compares with the ceilings of .ci/prose.toml
    python .ci/prose.py --list      # every sentence that breaks a rule
    python .ci/prose.py --tighten   # makes the present counts the ceilings

The script reads pages, docstrings, and messages in YAML and JSON files. Counts of pages and words
have ceilings, too; a table's lines between cells are not words. Variables without a noun count as
well.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = Path(__file__).with_name("prose.toml")
_HEAD = "# Ceilings of the prose, held by `make check` (.ci/prose.py).\n\n"
#: Trees whose docstrings are read, and trees whose messages are.
_CODE = ("sparkwright", "roles", "lab", "docs", "benchmarks", ".ci")
#: Keys of YAML and JSON files that hold sentences for users.
_MESSAGES = ("observed", "expected", "reason", "remedy", "title", "help", "explanation", "look")
_RULES = tomllib.loads(Path(__file__).with_name("prose-rules.toml").read_text(encoding="utf-8"))
#: A rule's name -> the sentences that break it.
RULES = {name: re.compile(pattern) for name, pattern in _RULES["sentences"].items()}
RULES["private"] = re.compile("|".join(_RULES["private"]), re.I)
#: First words of a docstring that are not its subject.
OPENING = re.compile(_RULES["opening"])


def sentences(text: str) -> Iterator[str]:
    """Sentences of a text; code spans are ``CODE``, and ends of tables' cells end a sentence."""
    text = re.sub(r"``?[^`]+`?`", "CODE", text)
    for part in re.split(r"(?<=[.!?])\s+|\s\|\s|\n\s*[-|*#>]+\s|\n\s*\n|\n\s+(?=\w+: )", text):
        if sentence := " ".join(part.split()).strip("|*#- "):
            yield sentence


def pages(root: Path) -> dict[str, str]:
    """Name -> text of README and every page of docs/."""
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def _prose(page: str) -> str:
    page = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.S)
    return re.sub(r"(?m)^    .*$", "", page)


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def _messages(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, str) and key in _MESSAGES:
                yield value
            yield from _messages(value)
    elif isinstance(data, list):
        for value in data:
            yield from _messages(value)


def texts(root: Path) -> Iterator[tuple[str, str, str]]:
    """Area, file and text of all prose."""
    for name, page in pages(root).items():
        yield "pages", name, _prose(page)
    for tree in _CODE:
        for file in sorted((root / tree).rglob("*.py")):
            for text in _docstrings(file.read_text(encoding="utf-8")):
                yield "docstrings", str(file.relative_to(root)), text
    for pattern in ("sparkwright/**/*.yaml", "catalog/**/*.yaml"):
        for file in sorted(root.glob(pattern)):
            for text in _messages(yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)):
                yield "messages", str(file.relative_to(root)), text
    for file in sorted((root / "sparkwright/cli").rglob("*.json")):
        for text in _messages(json.loads(file.read_text(encoding="utf-8"))):
            yield "messages", str(file.relative_to(root)), text


def variables(source: str) -> Iterator[str]:
    """Names of variables and arguments that a module binds."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def findings(root: Path) -> Iterator[tuple[str, str]]:
    """Each breach: area and rule, and file with sentence."""
    for area, file, text in texts(root):
        if area == "docstrings" and OPENING.search(text):
            yield "docstrings.opening", f"{file}: {text[:80]}"
        for sentence in sentences(text):
            for rule, pattern in RULES.items():
                if pattern.search(sentence):
                    yield f"{area}.{rule}", f"{file}: {sentence}"
    for tree in (*_CODE, "tests"):
        for path in sorted((root / tree).rglob("*.py")):
            for name in variables(path.read_text(encoding="utf-8")):
                if name in _RULES["variables"]:
                    yield "names.variables", f"{path.relative_to(root)}: {name}"


def count(root: Path) -> dict[str, int]:
    """Present counts, in the form of the ceilings."""
    names = [name for name, _ in findings(root)]
    written = pages(root)
    areas = sorted(
        f"{area}.{rule}" for area in ("docstrings", "messages", "pages") for rule in RULES
    )
    return {
        "pages": len(written),
        "words": sum(len(re.findall(r"\S*\w\S*", text)) for text in written.values()),
        **{area: names.count(area) for area in (*areas, "docstrings.opening", "names.variables")},
    }


def main(arguments: list[str]) -> int:
    """Compare with the ceilings, or write them."""
    present = count(ROOT)
    if "--tighten" in arguments:
        present["words"] += -present["words"] % 500  # room for a paragraph in each of two branches
        lines = "".join(f'"{name}" = {number}\n' for name, number in present.items())
        CEILINGS.write_text(_HEAD + lines, encoding="utf-8")
        return 0
    ceilings = tomllib.loads(CEILINGS.read_text(encoding="utf-8"))
    over = [name for name, number in present.items() if number > ceilings.get(name, 0)]
    for name, text in findings(ROOT):
        if "--list" in arguments or name in over:
            print(f"{name}: {text}")
    print(
        ", ".join(f"{name} {number} of {ceilings.get(name, 0)}" for name, number in present.items())
    )
    for name in over:
        print(
            f"{name}: {present[name]}, at most {ceilings.get(name, 0)} (.ci/prose.toml)",
            file=sys.stderr,
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
