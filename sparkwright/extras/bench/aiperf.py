"""The load generator, NVIDIA's AIPerf: its installation, input and report.

AIPerf is a separate program in its own venv (README, decisions), which ``make bench-tools`` makes;
nothing of it is imported here. A JSON file, which is YAML too, describes a run, and the run leaves
a folder: ``phase_manifest.json``, and for each phase ``phases/<name>/profile_export_aiperf.json``
and ``server_metrics.json``, the change of the server's own /metrics over the phase. Times are in
milliseconds there, and in seconds here.
"""

import json
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

from sparkwright.config.places import BENCH_PINS, INSTALLED
from sparkwright.config.secrets import Secret
from sparkwright.config.templates import template
from sparkwright.engines import DEFAULT, engine
from sparkwright.extras.bench.loads import Batch, Load
from sparkwright.extras.bench.results import MEASURES, Cell
from sparkwright.findings.user_error import Messages, Problems, UserError, mistake
from sparkwright.host.lib import metrics as neutral
from sparkwright.host.lib import model_list

_SECONDS = 10.0


@dataclass(frozen=True)
class Service:
    """A service that answers.

    Attributes:
        url: ``http://host:port``.
        model: the name in requests.
        context: tokens that prompt and answer may have together; None if the server does not report
            it.
        ca: file that verifies https; None for the public CAs.
    """

    url: str
    model: str
    key: Secret
    context: int | None = None
    ca: str | None = None
    engine: str = DEFAULT

    def send(self, method: str, path: str, *, key: bool = True, **body: Any) -> requests.Response:
        """The answer to a request, with the key or without."""
        headers = body.pop("headers", {})
        headers |= {"Authorization": f"Bearer {self.key.value}"} if key else {}
        return requests.request(
            method, f"{self.url}{path}", headers=headers, verify=self.ca or True,
            **{"timeout": _SECONDS, **body},
        )  # fmt: skip

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer. Raises UserError if the key is missing or refused."""
        try:
            answer = self.send(method, path, json=body)
            if answer.status_code != 401:
                answer.raise_for_status()
                return answer.json()
            raise _MESSAGES.refusal("key-refused", answer.url)
        except (requests.RequestException, ValueError) as error:
            raise self._silent(path, error) from None

    def has(self, path: str, body: Any) -> bool:
        """Return whether its server has a route. Raises UserError without an answer."""
        try:
            return self.send("POST", path, json=body).status_code != 404
        except requests.RequestException as error:
            raise self._silent(path, error) from None

    def _silent(self, path: str, error: Exception) -> UserError:
        reason = str(error).splitlines()[0][:160]
        return _MESSAGES.refusal("no-answer", f"{self.url}{path}", error=reason)

    def tokens(self, text: str) -> int:
        """Return the number of tokens of a text. Raises UserError as ``ask``."""
        probes = engine(self.engine).probes
        body = {"model": self.model, probes.tokenized: text, "add_special_tokens": False}
        return len(self.ask("POST", probes.tokenizer, body)["tokens"])

    def metrics(self, *, key: bool) -> tuple[int, bytes]:
        """Status and text of its metrics; 502 without an answer."""
        try:
            answer = self.send("GET", "/metrics", key=key)
        except requests.RequestException:
            return 502, b""
        return answer.status_code, answer.content


@contextmanager
def metrics_without_key(service: Service) -> Iterator[str | None]:
    """Metrics of the service for a load generator that can't send a key: on loopback, during a
    run; None if the service needs no key.
    """
    if service.metrics(key=False)[0] == 200:
        yield None
        return

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = service.metrics(key=True)
            self.send_response(status if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Read three times a second: nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def reach(name: str, candidates: Iterable[Service]) -> Service:
    """Return the first server that answers, of a service's addresses as the controller may reach
    them.

    Args:
        name: ``host/service``, for messages.

    Raises:
        UserError: no address answers, the key is refused, or the model is not served there.
    """
    problems = Problems()
    for service in candidates:
        with problems.collected():
            for entry in service.ask("GET", "/v1/models")["data"]:
                if service.model in model_list.names({"data": [entry]}):
                    return replace(service, context=model_list.context(entry))
            raise _MESSAGES.refusal("not-served", service.url, model=service.model)
    raise UserError(
        mistake(f"{name}: {problem.subject.place}", problem.observed, problem.remedy)
        for problem in problems
    )


NAME = "aiperf"
#: Its name in a result. Other prompts, or another way of sending them, give other figures: the
#: number increases, and results of another name do not count as a service's earlier runs.
LABEL = "sparkwright's prompts 1 by aiperf"
#: Names another venv than the project's ``.venv-bench``.
VARIABLE = "SPARKWRIGHT_BENCH_TOOLS"
FOLDER = Path(".venv-bench")
KEY_VARIABLE = "OPENAI_API_KEY"
#: Part of the environment beside the key. Not HF_HUB_OFFLINE: with it AIPerf finds no local
#: tokenizer.
ENVIRONMENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
#: Part of each request's body: as on the card of Qwen3.6-35B-A3B-heretic-NVFP4 (256-token output,
#: 'Test methodology notes').
BODY: dict[str, Any] = {
    "temperature": 0, "max_tokens": 256, "chat_template_kwargs": {"enable_thinking": False},
}  # fmt: skip
#: A question beside the document that a reranker is asked about.
_QUERY = "What does this text say?"
#: Limit of a request, in seconds: 64 prompts of 33000 tokens may wait for each other that long.
_TIMEOUT = 1800.0
_LONGEST = 200
_INSTALL = f"python3 -m venv {FOLDER} && {FOLDER}/bin/pip install --require-hashes -r {BENCH_PINS}"
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Endpoint:
    """Form of the requests to a service.

    Attributes:
        kind: the generator's name of the kind.
        path: route on the server; empty for the default route of the kind.
        body: fields of each request beside model and text.
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


def endpoint(service: Service, kinds: Mapping[str, str]) -> Endpoint:
    """Form of the requests to a service: for answers, for vectors, or for the score of a document;
    the kind itself if the generator does not know it.

    Args:
        kinds: kinds of requests that it answers, each with its route.

    Raises:
        UserError: without an answer.
    """
    if "chat" in kinds:
        return CHAT
    route = kinds.get("embedding")
    if route and service.has(route, {"model": service.model, "input": _QUERY}):
        return Endpoint("embeddings", route, {})
    if "rerank" in kinds:
        return Endpoint("cohere_rankings", kinds["rerank"], {})
    kind, route = next(iter(kinds.items()))
    return Endpoint(kind, route, {})


def find(environment: Mapping[str, str] = os.environ) -> Path:
    """The generator's program, at the pinned version.

    Raises:
        UserError: the generator is missing, or has another version, whose figures would not
            compare.
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
    """Put configuration, prompts and tokenizer into the folder in which a run leaves its results.

    Args:
        settings: ``url``, ``model`` and ``loads``; and ``metrics``, the address of the server's
            metrics, unless it is ``url`` without a key.
    """
    shutil.copytree(Path(__file__).with_name("tokenizer"), folder / "tokenizer")
    config = template("bench/aiperf.json.j2").render(
        folder=str(folder), endpoint=endpoint, timeout=_TIMEOUT, **settings
    )
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
    batch: Batch, load: Load, errors: int, report: Mapping[str, Any], metrics: Mapping[str, Any],
    endpoint: Endpoint = CHAT,
) -> Cell:  # fmt: skip
    """Convert a phase's report to a cell; with a category's own prompts it has the mean of their
    tokens, in tens.

    Args:
        errors: requests that failed.
        report: ``profile_export_aiperf.json``; empty if every request failed.
        metrics: ``server_metrics.json``; empty if the server's metrics were not available.
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

    The figures come from the engine's counters; empty without speculation, whose counters are then
    missing.
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
    """Requests of other clients that the server began meanwhile; 0 if uncertain.

    The metrics are read three times a second, so that requests of the warm-up may be included.
    """
    name = engine(DEFAULT).metrics[neutral.FIRST_TOKEN_COUNT].removesuffix("_count")
    begun = counted(metrics, name, "count")
    return max(0, round(begun or 0) - load.requests - load.warm_up)


def failed(manifest: Mapping[str, Any]) -> dict[str, int]:
    """``phase_manifest.json``: failed requests, by phase; a phase that was not begun is missing."""
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
