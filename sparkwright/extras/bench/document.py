"""The document of ``sparkwright bench --json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from typing_extensions import TypedDict

from sparkwright.extras.bench.compare import Verdict
from sparkwright.extras.bench.judgement import Bench
from sparkwright.extras.bench.results import Result


class Load(TypedDict):
    """What was measured: prompts, requests at a time, tokens."""

    category: str
    concurrency: int
    prompt_tokens: int | None
    max_tokens: int
    temperature: float | None


class Compared(TypedDict):
    """One load against the card's figures, and likely causes by their names."""

    load: Load
    verdicts: list[Verdict]
    causes: list[str]


class MeasuredService(TypedDict):
    """One service's newest result, judged."""

    result: Result
    comparison: list[Compared]
    regressions: list[dict[str, Any]]
    well: bool


def document(bench: Bench) -> dict[str, Any]:
    """The document of a service."""
    return {
        "result": bench.result.model_dump(mode="json", by_alias=True),
        "comparison": [
            {
                "load": {
                    "category": cell.cell.category, "concurrency": cell.cell.concurrency,
                    "prompt_tokens": cell.cell.prompt_tokens, "max_tokens": cell.cell.max_tokens,
                    "temperature": cell.cell.sampling_temperature,
                },
                "verdicts": list(map(asdict, cell.verdicts)),
                "causes": [cause.id for cause in cell.causes],
            }
            for cell in bench.cells
        ],
        "regressions": [
            {"load": one.cell.load, "measure": one.measure, "now": one.now, "usual": one.usual,
             "bound": one.bound, "runs": one.runs, "since": one.since}
            for one in bench.regressions
        ],
        "well": bench.well,
    }  # fmt: skip
