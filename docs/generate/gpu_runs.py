"""The table of runs on a real GPU in docs/lab.md, from the result files of lab/gpu."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generate.markdown import table

RESULTS = Path(__file__).parents[2] / "lab/gpu/results"
BEGIN, END = "<!-- gpu runs: generated -->\n", "<!-- /gpu runs -->"


def inserted(page: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.iterdir()}
    rows = [(*row, _where(runs[row[0]])) for row in _rows(runs)]
    return f"{before}{BEGIN}{table(('step', 'result', 'on'), rows)}\n{END}{after}"


def _where(run: dict[str, Any]) -> str:
    return f"{run['gpu']}, driver {run['driver']}, {run['engine']}, {run['date']}"


def _rows(runs: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    first, second = runs["deploy"]["first"], runs["deploy"]["second"]
    yield (
        "deploy",
        (
            f"from a bare host to answers in {first['seconds']} s, {first['executions']} remote "
            f"executions; the second run: {second['changes']} changes, {second['executions']} "
            f"remote executions, {second['seconds']} s"
        ),
    )
    seconds = runs["captures"]["idle"]
    yield (
        "captures",
        (
            "of an idle GPU: "
            + ", ".join(f"{name} exit code {item['code']}" for name, item in seconds.items())
            + f"; `smoke`, which asks for sense: {runs['captures']['smoke']['code']}"
        ),
    )
    boots = runs["boots"]
    yield (
        "boots",
        (
            f"seconds to /health: first start {boots['first_start']['total']}, second "
            f"{boots['second_start']['total']}; `systemctl restart` "
            f"{boots['to_health']['systemctl restart']}, `docker restart` "
            f"{boots['to_health']['docker restart']}"
        ),
    )
    yield (
        "killed",
        (
            f"EngineCore is killed: the engine ends with code 0 and serves again after "
            f"{runs['killed']['seconds to health']} s"
        ),
    )
    yield (
        "share",
        (
            f"another release, with 0.99 of the memory instead of 0.85: "
            f"{runs['share']['run']['seconds']} s, {runs['share']['run']['changes']} changes"
        ),
    )
    ways: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for run in runs["proxy"]["runs"]:
        if run["tokens"] > 2:
            ways.setdefault(run["streams"], {}).setdefault(run["way"], []).append(run)
    for streams, way in ways.items():
        rate, delay = (
            {name: statistics.median(item[key] for item in items) for name, items in way.items()}
            for key in ("tokens_per_second", "first_token_ms")
        )
        yield (
            "proxy",
            (
                f"{streams} at a time: {rate['engine']:,.0f} tokens/s at the engine's socket, "
                f"{rate['proxy'] / rate['engine']:.3f} x through HAProxy; first token after "
                f"{delay['engine']:.1f} ms, {delay['proxy'] - delay['engine']:+.1f} ms"
            ),
        )
