"""The load generator, NVIDIA's AIPerf: its installation, input and report.

AIPerf is a separate program in its own venv (README, decisions), which ``make bench-tools`` makes;
this module imports no code of AIPerf. A JSON file, which is also YAML, describes a run, and the run
leaves a folder: ``phase_manifest.json``, and for each phase
``phases/<name>/profile_export_aiperf.json``. Times are in milliseconds in these files, and in
seconds in this module.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from sparkwright.config.places import BENCH_PINS, INSTALLED
from sparkwright.config.templates import template
from sparkwright.extras.bench import loads, measured_service, results
from sparkwright.findings.user_error import Messages

NAME = "aiperf"
#: Name of this measuring method in results. Other prompts, or another way to send them, give other
#: figures: the number in the name must then increase, and results with different names are not
#: compared.
LABEL = "sparkwright's prompts 1 by aiperf"
#: Variable that names a venv other than the project's ``.venv-bench``.
VARIABLE = "SPARKWRIGHT_BENCH_TOOLS"
FOLDER = Path(".venv-bench")
KEY_VARIABLE = "OPENAI_API_KEY"
#: Part of the environment besides the key. HF_HUB_OFFLINE is not set: with this variable, AIPerf
#: finds no local tokenizer.
ENVIRONMENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
#: Part of each request's body: as on the card of Qwen3.6-35B-A3B-heretic-NVFP4 (256-token output,
#: 'Test methodology notes').
BODY: dict[str, Any] = {
    "temperature": 0, "max_tokens": 256, "chat_template_kwargs": {"enable_thinking": False},
}  # fmt: skip
#: Query that a reranker gets with each document.
_QUERY = "What does this text say?"
#: Limit of a request, in seconds: 64 prompts of 33000 tokens may wait this long for each other.
_TIMEOUT = 1800.0
_LONGEST = 200
_INSTALL = f"python3 -m venv {FOLDER} && {FOLDER}/bin/pip install --require-hashes -r {BENCH_PINS}"
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Endpoint:
    """Form of the requests to a service.

    Attributes:
        kind: name of the kind in the generator.
        path: route on the server; empty for the default route of the kind.
        body: fields of each request beside model and text.
    """

    kind: str = "chat"
    path: str = ""
    body: Mapping[str, Any] = field(default_factory=lambda: BODY)

    @property
    def pools(self) -> bool:
        """Return whether the model computes vectors or scores instead of tokens."""
        return self.kind != "chat"

    def line(self, prompt: str) -> dict[str, Any]:
        """A line of the dataset."""
        if self.kind != "cohere_rankings":
            return {"text": prompt}
        texts = {"query": _QUERY, "passages": prompt}
        return {"texts": [{"name": name, "contents": [text]} for name, text in texts.items()]}


CHAT = Endpoint()


def endpoint(service: measured_service.Service, kinds: Mapping[str, str]) -> Endpoint:
    """Return the form of requests to a service: chats, embeddings, scores of documents, or a kind
    that the generator does not support.

    Args:
        kinds: kinds of requests that the service answers, each with its route.

    Raises:
        UserError: the service does not answer.
    """
    if "chat" in kinds:
        return CHAT
    body = {"model": service.model, "input": _QUERY}
    if (route := kinds.get("embedding")) and service.send("POST", route, body).status_code != 404:
        return Endpoint("embeddings", route, {})
    if route := kinds.get("rerank"):
        return Endpoint("cohere_rankings", route, {})
    kind, route = next(iter(kinds.items()))
    return Endpoint(kind, route, {})


def find(environment: Mapping[str, str] = os.environ) -> Path:
    """The generator's program, at the pinned version.

    Raises:
        UserError: the generator is missing, or has another version, whose figures could not be
            compared.
    """
    folder = Path(environment.get(VARIABLE) or FOLDER).absolute()
    paths = [str(path) for path in folder.glob("lib/python3*/site-packages")]
    installed = [each.version for each in distributions(name=NAME, path=paths)]
    if installed != [pinned()]:
        raise _MESSAGES.refusal(
            "other-version" if installed else "not-installed", f"load generator {NAME}",
            folder=folder, installed=installed, version=pinned(), variable=VARIABLE,
            install=_INSTALL if INSTALLED else "make bench-tools",
        )  # fmt: skip
    return folder / "bin" / NAME


def pinned() -> str:
    """The generator's version in the file of pins."""
    pins = BENCH_PINS.read_text(encoding="utf-8").split()
    return next(pin for pin in pins if pin.startswith(f"{NAME}==")).partition("==")[2]


def prepare(folder: Path, prompts: Sequence[str], endpoint: Endpoint, **settings: Any) -> None:
    """Put configuration, prompts and tokenizer into the folder in which a run leaves its results.

    Args:
        settings: ``url``, ``model`` and ``loads``.
    """
    shutil.copytree(Path(__file__).with_name("tokenizer"), folder / "tokenizer")
    settings |= {"folder": str(folder), "endpoint": endpoint, "timeout": _TIMEOUT}
    config = template("bench/aiperf.json.j2").render(settings)
    (folder / "config.json").write_text(config, encoding="utf-8")
    lines = (json.dumps(endpoint.line(prompt)) + "\n" for prompt in prompts)
    (folder / "dataset.jsonl").write_text("".join(lines), encoding="utf-8")


def command_line(program: str, folder: str) -> list[str]:
    """The command line. The folder contains no secret."""
    return [
        program, "profile", "--config", f"{folder}/config.json", "--artifact-dir", f"{folder}/out",
        "--ui", "none", "--no-gpu-telemetry",
    ]  # fmt: skip


def cell(
    batch: loads.Batch, load: loads.Load, errors: int, report: Mapping[str, Any],
    acceptances: Mapping[str, float], endpoint: Endpoint = CHAT,
) -> results.Cell:  # fmt: skip
    """Convert a phase's report to a cell; with a category's own prompts the cell has the mean of
    their tokens, rounded to tens.

    Args:
        errors: requests that failed.
        report: ``profile_export_aiperf.json``; empty if every request failed.
    """

    def value(name: str, statistic: str) -> float | None:
        value = (report.get(name) or {}).get(statistic)
        return float(value) if isinstance(value, int | float) else None

    measures = {
        measure.name: measure.scale * figure
        for measure in results.MEASURES
        if measure.pooling == endpoint.pools and (figure := value(*measure.reported)) is not None
    }
    length = round(value("input_sequence_length", "avg") or 0, -1)
    return results.Cell(
        category=batch.category,
        concurrency=load.concurrency,
        prompt_tokens=batch.context or int(length),
        max_tokens=endpoint.body.get("max_tokens", 0),
        requests=round(value("request_count", "avg") or 0),
        errors=errors,
        measures=measures | dict(acceptances),
    )


def failed(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Count failed requests by phase from ``phase_manifest.json``; phases that did not begin are
    missing.
    """
    return {
        str(entry["phase_name"]): int(entry.get("error_request_count") or 0)
        for entry in manifest.get("phases", ())
    }


def reasons(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Reasons of failed requests, in the server's own words, each once and shortened."""
    messages = [
        " ".join(str(error.get("error_details", {}).get("message", "")).split())[:_LONGEST]
        for entry in manifest.get("phases", ())
        for error in entry.get("error_summary") or ()
    ]
    return tuple(dict.fromkeys(filter(None, messages)))
