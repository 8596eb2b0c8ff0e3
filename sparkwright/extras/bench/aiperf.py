"""The load generator, NVIDIA's AIPerf: its installation, what it is given, and what it reports.

AIPerf is a program of its own in a venv of its own (README, decisions), which ``make bench-tools``
makes; nothing of it is imported here. A run is described by a file of JSON, which is YAML too, and
leaves a folder: ``phase_manifest.json``, and for each phase
``phases/<name>/profile_export_aiperf.json`` and ``server_metrics.json``, the change of the server's
own /metrics over the phase. Times in milliseconds there, in seconds here.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.config.places import BENCH_PINS, INSTALLED
from sparkwright.config.templates import template
from sparkwright.engines import DEFAULT, engine
from sparkwright.engines.engine import Probes
from sparkwright.extras.bench.loads import Batch, Load
from sparkwright.extras.bench.measured_service import Service
from sparkwright.extras.bench.results import MEASURES, Cell
from sparkwright.findings.user_error import Messages
from sparkwright.host.lib import metrics as neutral

NAME = "aiperf"
#: What a result calls it. Other prompts, or sent otherwise, are other figures: the number goes up,
#: and results of another name do not count as a service's past.
LABEL = "sparkwright's prompts 1 by aiperf"
#: Names another venv than the project's ``.venv-bench``.
VARIABLE = "SPARKWRIGHT_BENCH_TOOLS"
FOLDER = Path(".venv-bench")
KEY_VARIABLE = "OPENAI_API_KEY"
#: Of the environment beside the key. Not HF_HUB_OFFLINE: with it AIPerf finds no local tokenizer.
ENVIRONMENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
#: Of each request's body: as on the card of Qwen3.6-35B-A3B-heretic-NVFP4 (256-token output, 'Test
#: methodology notes').
BODY: dict[str, Any] = {
    "temperature": 0, "max_tokens": 256, "chat_template_kwargs": {"enable_thinking": False},
}  # fmt: skip
#: A question beside the document that a reranker is asked about.
_QUERY = "What does this text say?"
#: Of a request, in seconds: 64 prompts of 33000 tokens may wait for each other that long.
_TIMEOUT = 1800.0
_LONGEST = 200
_INSTALL = f"python3 -m venv {FOLDER} && {FOLDER}/bin/pip install --require-hashes -r {BENCH_PINS}"
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Endpoint:
    """Form of the requests to a service.

    Attributes:
        kind: the generator's name of it.
        path: route on the server; empty for the kind's own.
        body: of each request, beside model and text.
    """

    kind: str = "chat"
    path: str = ""
    body: Mapping[str, Any] = field(default_factory=lambda: BODY)

    @property
    def pools(self) -> bool:
        """Whether a model is asked for vectors or scores, and writes no tokens."""
        return self.kind != "chat"

    def line(self, prompt: str) -> dict[str, Any]:
        """A line of the dataset."""
        if self.kind != "cohere_rankings":
            return {"text": prompt}
        texts = {"query": _QUERY, "passages": prompt}
        return {"texts": [{"name": name, "contents": [text]} for name, text in texts.items()]}


CHAT = Endpoint()


def endpoint(service: Service, probes: Probes) -> Endpoint:
    """Form of the requests to a service: for answers, for vectors, or for the score of a document.

    Args:
        probes: of its engine, with the service's arguments.

    Raises:
        UserError: without an answer.
    """
    if not probes.embeddings and not probes.rerank:
        return CHAT
    if probes.embeddings and service.has(
        probes.embeddings, {"model": service.model, "input": _QUERY}
    ):
        return Endpoint("embeddings", probes.embeddings, {})
    return Endpoint("cohere_rankings", probes.rerank, {})


def find(environment: Mapping[str, str] = os.environ) -> Path:
    """The generator's program, at the pinned version.

    Raises:
        UserError: when it is not there, or of another version: figures would not compare.
    """
    folder = Path(environment.get(VARIABLE) or FOLDER).absolute()
    program = folder / "bin" / NAME
    folders = folder.glob(f"lib/python3*/site-packages/{NAME}-*.dist-info")
    installed = [path.name.removesuffix(".dist-info").partition("-")[2] for path in folders]
    message = "other-version" if program.is_file() and installed else "not-installed"
    if message == "not-installed" or installed[0] != pinned():
        raise _MESSAGES.refusal(
            message, f"load generator {NAME}", folder=folder, installed=installed, version=pinned(),
            install=_INSTALL if INSTALLED else "make bench-tools", variable=VARIABLE,
        )  # fmt: skip
    return program


@cache
def pinned() -> str:
    """The generator's version in the file of pins."""
    (version,) = re.findall(
        rf"^{NAME}==(\S+)", BENCH_PINS.read_text(encoding="utf-8"), re.MULTILINE
    )
    return str(version)


def prepare(folder: Path, prompts: Sequence[str], endpoint: Endpoint, **settings: Any) -> None:
    """Put configuration, prompts and tokenizer into the folder that a run leaves its results in.

    Args:
        settings: ``url``, ``model`` and ``loads``; and ``metrics``, where the server's are read, if
            not at ``url`` without a key.
    """
    shutil.copytree(Path(__file__).with_name("tokenizer"), folder / "tokenizer")
    config = template("bench/aiperf.json.j2").render(
        folder=str(folder), endpoint=endpoint, timeout=_TIMEOUT, **settings
    )
    (folder / "config.json").write_text(config, encoding="utf-8")
    lines = (json.dumps(endpoint.line(prompt)) + "\n" for prompt in prompts)
    (folder / "dataset.jsonl").write_text("".join(lines), encoding="utf-8")


def command_line(program: str, folder: str) -> list[str]:
    """The command line. Nothing secret is in it."""
    return [
        program, "profile", "--config", f"{folder}/config.json", "--artifact-dir", f"{folder}/out",
        "--ui", "none", "--no-gpu-telemetry",
    ]  # fmt: skip


def cell(
    batch: Batch, load: Load, errors: int, report: Mapping[str, Any], metrics: Mapping[str, Any],
    endpoint: Endpoint = CHAT,
) -> Cell:  # fmt: skip
    """A phase's report as a cell; of a category's own prompts the mean of their tokens, in tens.

    Args:
        errors: requests that failed.
        report: ``profile_export_aiperf.json``; empty where every request failed.
        metrics: ``server_metrics.json``; empty where the server's were not to be had.
    """

    def value(name: str, statistic: str) -> float | None:
        value = (report.get(name) or {}).get(statistic)
        return float(value) if isinstance(value, int | float) else None

    figures = {measure.name: (measure.scale, value(*measure.reported))
               for measure in MEASURES if measure.pooling == endpoint.pools}  # fmt: skip
    taken = {
        name: scale * figure for name, (scale, figure) in figures.items() if figure is not None
    }
    return Cell(
        category=batch.category,
        concurrency=load.concurrency,
        prompt_tokens=batch.context
        or 10 * round((value("input_sequence_length", "avg") or 0) / 10),
        max_tokens=endpoint.body.get("max_tokens", 0),
        requests=round(value("request_count", "avg") or 0),
        errors=errors,
        measures=taken | acceptances(metrics),
    )


def acceptances(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Share of the draft that was accepted, and mean tokens per step (1 + accepted / drafts).

    From the engine's counters; empty without speculation, whose counters are then not there.
    """
    names = engine(DEFAULT).metrics
    drafts, tokens, accepted = (
        counted(metrics, names[name].removesuffix("_total"))
        for name in (neutral.DRAFTS, neutral.DRAFTED, neutral.ACCEPTED)
    )
    if not drafts or not tokens or accepted is None:
        return {}
    return {
        "acceptance": min(1.0, accepted / tokens), "acceptance_length": 1 + accepted / drafts
    }  # fmt: skip


def counted(metrics: Mapping[str, Any], name: str, of: str = "total") -> float | None:
    """A counter's change over the phase, or a histogram's ``count`` or ``sum``; all engines."""
    values = [
        float(value)
        for endpoint in metrics.get("data", {}).get("endpoint_summaries", {}).values()
        for series in endpoint.get("metrics", {}).get(name, {}).get("series", ())
        if (value := series.get("stats", {}).get(of)) is not None
    ]
    return sum(values) if values else None


def foreign_requests(load: Load, metrics: Mapping[str, Any]) -> int:
    """Requests of other clients that the server began meanwhile; 0 where not certain.

    The metrics are read three times a second, so that requests of the warm-up may be among them.
    """
    name = engine(DEFAULT).metrics[neutral.FIRST_TOKEN_COUNT].removesuffix("_count")
    begun = counted(metrics, name, "count")
    return max(0, round(begun or 0) - load.requests - load.warm_up)


def failed(manifest: Mapping[str, Any]) -> dict[str, int]:
    """``phase_manifest.json``: requests that failed, by phase; one not begun is not in it."""
    return {
        str(entry["phase_name"]): int(entry.get("error_request_count") or 0)
        for entry in manifest.get("phases", ())
    }


def reasons(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Why requests failed, in the server's own words, each once and in short."""
    messages = [
        " ".join(str(error.get("error_details", {}).get("message", "")).split())[:_LONGEST]
        for entry in manifest.get("phases", ())
        for error in entry.get("error_summary") or ()
    ]
    return tuple(dict.fromkeys(filter(None, messages)))
