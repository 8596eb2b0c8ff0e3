"""Read the cards: sections, tables, figures and dates of their text.

The cards are not in this repository. ``python -m tests.cards.read DIRECTORY`` reads the cards from
there and writes figures.yaml and tables.yaml beside this file: the numbers of each section and the
cells of each table, without sentences.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.libyaml import safe_load

HERE = Path(__file__).parent
#: The first words of each card's text.
BEGINS = {
    "card of vllm-ultimate-dgx-spark": "One container, the whole fleet",
    "card of Qwen3.6-35B-A3B-heretic-NVFP4": "What changed in v2 (2026-04-19)",
    "card of vllm-dflash": "DFlash vLLM for DGX Spark",
    "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4": "Instructions to use AEON-7/Gemma",
    "card of vllm-spark-omni-q36": "Qwen3.6-35B-A3B-heretic NVFP4 + DFlash on DGX Spark",
}
_DATE = re.compile(r"20\d\d-\d\d-\d\d")
#: A figure of a text: 0.60 of "uses0.60so", a text that has lost its spaces, but not 3 of Qwen3 or
#: sm_121a, 2.0 of Apache-2.0, 7 of #7 or 27 of 27B.
_NUMBER = re.compile(
    r"(?<![#.\d])(?:(?<![\w])(\d[\d,]*(?:\.\d+)?)|(?<=[a-z])(0\.\d+))(?![\d.]*[Bb]\b)"
    r"(?:\s?([KkM])(?![a-zA-Z0-9]))?"
)
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:\.?(?:post|dev|rc)\d*|\+\w+)*")
_NAME = re.compile(r"(?:Apache|GPL|BSD|AEON)-[\d.]+")


@dataclass(frozen=True)
class Table:
    """A table of a card.

    Attributes:
        number: number among the section's tables, from 1.
        rows: cells as on the card; a row whose columns are lost is one cell.
    """

    card: str
    section: str
    number: int
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def texts(directory: Path) -> dict[str, str]:
    """Card -> its text."""
    result = {}
    for path in sorted(directory.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for card, arguments in BEGINS.items():
            if text.startswith(arguments):
                result[card] = text
    return result


def sections(card: str, text: str) -> dict[str, str]:
    """Name of a section -> its text.

    Raises:
        ValueError: the beginning of a section differs from sections.yaml.
    """
    listed = safe_load((HERE / "sections.yaml").read_text(encoding="utf-8"))[card]
    starts, at = [], 0
    for name, arguments in listed:
        index = text.find(arguments, at)
        if index < 0:
            raise ValueError(f"{card}: {name}: does not begin with {arguments!r}")
        starts.append((index, name))
        at = index + 1
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: text[start:end] for (start, name), end in zip(starts, ends, strict=True)}


def figures(text: str) -> list[float]:
    """Every number of a text; ``180k`` is both 180 and 180000."""
    result: set[float] = set()
    for match in _NUMBER.finditer(_prose(text)):
        number = float((match[1] or match[2]).rstrip(",").replace(",", ""))
        result.add(number)
        if match[3]:
            result.add(number * {"k": 1000, "m": 1_000_000}[match[3].lower()])
    return sorted(result)


def _prose(text: str) -> str:
    for other in (_DATE, _VERSION, _NAME):
        text = other.sub(" ", text)
    return text


def versions(text: str) -> list[str]:
    """Every version of a text, such as 0.24.0."""
    return sorted({match[0].rstrip(".") for match in _VERSION.finditer(text)})


def dates(text: str) -> list[str]:
    """Every date of a text."""
    return sorted(set(_DATE.findall(text)))


def tables(card: str, name: str, text: str) -> Iterator[Table]:
    """The tables of a section. Cells on separate lines are joined to rows."""
    lines = text.splitlines()
    heads = [at for at, line in enumerate(lines) if "|" in line and _rule(lines, at + 1)]
    for number, at in enumerate(heads, 1):
        columns = _cells(lines[at][lines[at].index("|") :])
        rows: list[tuple[str, ...]] = []
        open_row: list[str] = []
        for line in lines[at + 2 : (heads[number : number + 1] or [len(lines)])[0]]:
            if not (line.startswith("|") or line.endswith("|")):
                break
            cells = _cells(line)
            if line.startswith("|") and not open_row and len(cells) == len(columns):
                rows.append(cells)
                continue
            open_row += [*cells]
            if len(open_row) >= len(columns):
                rows.append(tuple(open_row[: len(columns)]))
                open_row = []
        if open_row and any(open_row):
            rows.append(tuple(open_row))
        yield Table(card, name, number, columns, tuple(rows))


def _rule(lines: list[str], at: int) -> bool:
    return at < len(lines) and re.fullmatch(r"\|[-|]+", lines[at]) is not None


def _cells(line: str) -> tuple[str, ...]:
    return tuple(
        cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")
    )


def facts(directory: Path) -> dict[str, Any]:
    """Contents of figures.yaml."""
    result: dict[str, Any] = {}
    for card, text in texts(directory).items():
        result[card] = {
            "dates": " ".join(dates(text)),
            "sections": {
                name: {
                    "figures": " ".join(f"{figure:.10g}" for figure in figures(part)),
                    "versions": " ".join(versions(part)),
                }
                for name, part in sections(card, text).items()
            },
        }
    return result


def all_tables(directory: Path) -> list[Table]:
    """Every table of every card."""
    return [
        table
        for card, text in texts(directory).items()
        for name, part in sections(card, text).items()
        for table in tables(card, name, part)
    ]


def compared() -> dict[str, Any]:
    """Contents of compared.yaml."""
    result: dict[str, Any] = safe_load((HERE / "compared.yaml").read_text(encoding="utf-8"))
    return result


def cells(directory: Path) -> list[dict[str, Any]]:
    """Contents of tables.yaml: figures, and the first two columns of names and versions."""
    kept = {tuple(item["at"]): item for item in compared()["tables"] if "because" not in item}
    result = []
    for table in all_tables(directory):
        entry = kept.get((table.card, table.section, table.number))
        if entry is None:
            continue
        width = 2 if {"components", "variables"} & set(entry) else None
        result.append(
            {
                "at": [table.card, table.section, table.number],
                "columns": list(table.columns[:width]),
                "rows": [list(row[:width]) for row in table.rows],
            }
        )
    return result


def _written(data: Any) -> str:
    return yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )


def fixtures(directory: Path) -> dict[str, str]:
    """Name of a file beside this module -> its text."""
    return {"figures.yaml": _written(facts(directory)), "tables.yaml": _written(cells(directory))}


if __name__ == "__main__":
    for name, text in fixtures(Path(sys.argv[1])).items():
        (HERE / name).write_text(text, encoding="utf-8")
