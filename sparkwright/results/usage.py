"""Usage of models by keys, summed over the fleet's addresses: a table, and the record for pages."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path

from sparkwright.documents.generated_json import read
from sparkwright.findings.finding import Finding
from sparkwright.host.models.report import UsageRow
from sparkwright.results import answers
from sparkwright.text.table import columns

#: The last answer to `sparkwright usage`, for pages, which query no host.
KEPT = Path(".sparkwright/usage.json")
_HEAD = ("key", "model", "requests", "failed", "tokens in", "tokens out", "hours", "cut")


def summed(rows: Iterable[UsageRow], *, by_day: bool = True) -> list[UsageRow]:
    """Merge the rows of several addresses by key and model, for each day or for all days. A row for
    all days has the last day.
    """
    sums: dict[tuple[str, ...], UsageRow] = {}
    for row in sorted(rows, key=lambda row: (row.day, row.key, row.model)):
        place = (row.day if by_day else "", row.key, row.model)
        before = sums.get(place)
        counts = zip(astuple(before)[3:], astuple(row)[3:], strict=True) if before else ()
        sums[place] = UsageRow(row.day, row.key, row.model, *map(sum, counts)) if before else row
    return list(sums.values())


def render(rows: Sequence[UsageRow]) -> str:
    """Render the table, with the sum of all rows as the last row."""
    totals = summed(rows, by_day=False)
    if not totals:
        return "no request was counted"
    everything = summed(replace(row, key="all", model="", day="") for row in rows)
    cells = [
        (
            row.key, row.model, *(f"{count:,}" for count in astuple(row)[3:7]),
            f"{row.seconds / 3600:.2f}", f"{row.cut:,}",
        )
        for row in (*totals, *everything)
    ]  # fmt: skip
    return "\n".join(columns([_HEAD, *cells]))


def keep(rows: Sequence[UsageRow]) -> None:
    """Keep the rows for pages."""
    answers.keep(KEPT, [asdict(row) for row in rows])


def kept(problems: list[Finding]) -> tuple[list[UsageRow], dt.datetime | None]:
    """Return the stored rows and their time; the time is None if `sparkwright usage` never ran."""
    if not KEPT.exists():
        return [], None
    remedy = "remove the file, and run the command again"
    rows: list[UsageRow] = read(list[UsageRow], KEPT, remedy, problems) or []
    return rows, dt.datetime.fromtimestamp(KEPT.stat().st_mtime, dt.UTC)
