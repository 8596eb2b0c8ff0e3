"""Measuring a service: the generator is started once for each batch, and its reports are read."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkwright.extras.bench import aiperf
from sparkwright.extras.bench.aiperf import Tool
from sparkwright.extras.bench.loads import Batch, sample
from sparkwright.extras.bench.measured_service import Service, metrics_without_key
from sparkwright.extras.bench.results import Cell
from sparkwright.findings.user_error import refusal

#: Of an answer: as on the card of Qwen3.6-35B-A3B-heretic-NVFP4 (256-token output).
MAX_TOKENS = 256
#: The chat template's own tokens, and what the estimate of a long prompt may be wrong by.
_SPARE = 1.05
_LAST_LINES = 5
_PREFIX = "sparkwright-bench-"


@dataclass
class Measured:
    """Result of a sweep: its cells, the generator's last command line, and remarks."""

    cells: list[Cell] = field(default_factory=list)
    command: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)


def measure(
    tool: Tool,
    service: Service,
    batches: Sequence[Batch],
    *,
    seed: str,
    say: Callable[[str], None],
    while_last: Callable[[], None] | None = None,
    keep: Path | None = None,
    max_tokens: int = MAX_TOKENS,
    body: Mapping[str, Any] | None = None,
) -> Measured:
    """Measure one service, batch after batch.

    Args:
        seed: of this run alone, so that no long prompt is in a prefix cache from before.
        say: told which batch is measured.
        while_last: called in a thread of its own while the last batch runs.
        keep: a directory that the generator's own reports are kept in.
        body: more keys of each request's body.

    Raises:
        UserError: when not one request was answered. A batch that fails alone is reported, and its
            cells have nothing but errors.
    """
    measured = Measured()
    fitting = [batch for batch in batches if _fits(batch, service, max_tokens)]
    measured.remarks += [
        f"{batch.context} prompt tokens are left out: the service takes {service.context} with the "
        "answer"
        for batch in batches
        if batch not in fitting
    ]
    text = sample() if any(batch.context for batch in fitting) else ""
    characters = len(text) / max(1, service.tokens(text)) if text else 0.0
    for number, batch in enumerate(fitting, 1):
        at_a_time = ", ".join(str(load.concurrency) for load in batch.loads)
        say(f"{number} of {len(fitting)}: {batch.title}, {at_a_time} at a time")
        with (
            tempfile.TemporaryDirectory(prefix=_PREFIX) as temporary,
            metrics_without_key(service) as metrics,
            _beside(while_last if number == len(fitting) else None),
        ):
            folder = keep / f"{number}-{batch.category}" if keep else Path(temporary)
            folder.mkdir(exist_ok=True)
            aiperf.prepare(
                folder, batch.prompts(f"{seed}-{number}", characters), url=service.url,
                model=service.model, loads=batch.loads, metrics=metrics, max_tokens=max_tokens,
                body=body or {},
            )  # fmt: skip
            command = aiperf.command_line(str(tool.program), str(folder))
            problem = _start(command, service)
            measured.command = (aiperf.NAME, *map(_repeatable, command[1:]))
            measured.cells += _read(folder / "out", batch, max_tokens, measured.remarks)
            measured.remarks += [f"{batch.title}: {problem}"] if problem else []
    if not any(cell.requests for cell in measured.cells):
        observed = "; ".join(["no request was answered", *measured.remarks])
        remedy = "look at the service: journalctl -u sparkwright-<service> on the host"
        where = f"{service.url}, measured by {aiperf.NAME}"
        raise refusal(where, observed, remedy)
    return measured


@contextmanager
def _beside(work: Callable[[], None] | None) -> Iterator[None]:
    """Do something in a thread of its own meanwhile, and wait for its end."""
    thread = threading.Thread(target=work) if work else None
    if thread:
        thread.start()
    try:
        yield
    finally:
        if thread:
            thread.join()


def _fits(batch: Batch, service: Service, max_tokens: int) -> bool:
    if batch.context is None or service.context is None:
        return True
    return batch.context * _SPARE + max_tokens <= service.context


def _start(command: Sequence[str], service: Service) -> str | None:
    """Run the generator to its end; returns what went wrong, in its own last words."""
    environment = {**os.environ, **aiperf.ENVIRONMENT, aiperf.KEY_VARIABLE: service.key.value}
    if service.ca:
        environment["SSL_CERT_FILE"] = str(Path(service.ca).absolute())
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if not done.returncode:
        return None
    lines = [line.strip(" │╭╰─╮╯") for line in done.stdout.splitlines()]
    last = " ".join([line for line in lines if line][-_LAST_LINES:])
    return f"the load generator ended with {done.returncode}: {last or 'without a word'}"


def _read(folder: Path, batch: Batch, max_tokens: int, remarks: list[str]) -> Iterator[Cell]:
    manifest = _json(folder / "phase_manifest.json") or {}
    failed = aiperf.failed(manifest)
    remarks += [f"{batch.category}: requests failed: {why}" for why in aiperf.reasons(manifest)]
    for load in batch.loads:
        metrics = _json(folder / "phases" / load.phase / "server_metrics.json")
        if foreign := aiperf.foreign_requests(load, metrics or {}):
            remarks.append(
                f"{batch.category}, {load.concurrency} at a time: the service also answered about "
                f"{foreign} requests of others; its figures are not of this load alone"
            )
        report = _json(folder / "phases" / load.phase / "profile_export_aiperf.json")
        errors = failed.get(load.phase, load.requests)
        yield aiperf.cell(batch, load, max_tokens, errors, report, metrics)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        observed = f"the load generator left no JSON: {error}"
        raise refusal(str(path), observed, "measure again") from None


def _repeatable(word: str) -> str:
    """A word of the command as it can be repeated: without the temporary folder."""
    return f"FOLDER/{Path(word).name}" if _PREFIX in word else word
