"""Measuring a service: the generator is started once for each batch, and its reports are read."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkwright.extras.bench import aiperf
from sparkwright.extras.bench.loads import Batch
from sparkwright.extras.bench.metrics import without_key
from sparkwright.extras.bench.results import Cell
from sparkwright.extras.bench.service import Service
from sparkwright.extras.bench.texts import long_prompt, sample, texts
from sparkwright.extras.bench.tool import Tool
from sparkwright.findings.user_error import UserError, mistake

#: Of vLLM's answers: as on the card of Qwen3.6-35B-A3B-heretic-NVFP4 (256-token output).
MAX_TOKENS = 256
#: The chat template's own tokens, and what the estimate of a long prompt may be wrong by.
_SPARE = 1.05
_LAST_LINES = 5
#: Says how a batch goes: what is measured, or a line that the reader must know.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What came of a sweep: its cells, the generator's last command line, and remarks."""

    cells: tuple[Cell, ...]
    command: tuple[str, ...]
    remarks: tuple[str, ...]


def measure(
    tool: Tool,
    service: Service,
    batches: Sequence[Batch],
    *,
    seed: str,
    say: Say,
    max_tokens: int = MAX_TOKENS,
    while_last: Callable[[], None] | None = None,
    body: dict[str, Any] | None = None,
    keep: Path | None = None,
) -> Measured:
    """Measure one service, batch after batch.

    Args:
        seed: of this run alone, so that no long prompt is in a prefix cache from before.
        while_last: called in a thread of its own while the last batch runs.
        body: more keys of each request's body.
        keep: a directory that the generator's own reports are kept in.

    Raises:
        UserError: when not one request was answered. A batch that fails alone is reported, and its
            cells have nothing but errors.
    """
    cells: list[Cell] = []
    remarks: list[str] = []
    command: tuple[str, ...] = ()
    fitting = [batch for batch in batches if _fits(batch, service, max_tokens)]
    for batch in batches:
        if batch not in fitting:
            remarks.append(
                f"{batch.context} prompt tokens are left out: the service takes {service.context} "
                "with the answer"
            )
    characters = 0.0
    if any(batch.context for batch in fitting):
        text = sample()
        characters = len(text) / max(1, service.tokens(text))
    for number, batch in enumerate(fitting, 1):
        length = f"{batch.context} tokens" if batch.context else "its own prompts"
        at_a_time = ", ".join(str(load.concurrency) for load in batch.loads)
        say(f"{number} of {len(fitting)}: {batch.category}, {length}, {at_a_time} at a time")
        watcher = None
        if while_last is not None and number == len(fitting):
            watcher = threading.Thread(target=while_last)
            watcher.start()
        with (
            tempfile.TemporaryDirectory(prefix="sparkwright-bench-") as name,
            without_key(service) as metrics,
        ):
            folder = Path(name) if keep is None else keep / f"{number}-{batch.category}"
            prompts = _prompts(batch, f"{seed}-{number}", characters)
            command = tuple(
                _write(tool, service, batch, prompts, folder, max_tokens, body, metrics)
            )
            try:
                wrong = _start(command, service)
                cells += _read(folder / "out", batch, max_tokens, remarks)
            finally:
                if watcher is not None:
                    watcher.join()
            if wrong:
                remarks.append(f"{batch.category}, {length}: {wrong}")
    if not any(cell.requests for cell in cells):
        raise UserError(
            [
                mistake(
                    f"{service.url}, measured by {aiperf.NAME}",
                    "; ".join(["no request was answered", *remarks]),
                    "look at the service: journalctl -u sparkwright-<service> on the host",
                )
            ]
        )
    return Measured(tuple(cells), _repeatable(command), tuple(remarks))


def _fits(batch: Batch, service: Service, max_tokens: int) -> bool:
    if batch.context is None or service.context is None:
        return True
    return batch.context * _SPARE + max_tokens <= service.context


def _prompts(batch: Batch, seed: str, characters: float) -> list[str]:
    if batch.context is None:
        return list(texts(batch.category).prompts)
    return [
        long_prompt(batch.category, batch.context, f"{seed}-{number}", characters)
        for number in range(batch.requests)
    ]


def _write(
    tool: Tool, service: Service, batch: Batch, prompts: Sequence[str], folder: Path,
    max_tokens: int, body: dict[str, Any] | None, metrics: str | None,
) -> list[str]:  # fmt: skip
    """Put down what the generator reads; returns its command line."""
    settings = aiperf.config(
        url=service.url, model=service.model, loads=batch.loads, max_tokens=max_tokens,
        folder=str(folder), body=body, metrics=metrics,
    )  # fmt: skip
    for name, data in {"config.json": settings, **aiperf.files(prompts)}.items():
        lines = data if isinstance(data, list) else [data]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return aiperf.words(str(tool.program), str(folder))


def _start(command: Sequence[str], service: Service) -> str | None:
    """Run the generator to its end; returns what went wrong, in its own last words."""
    environment = {**os.environ, **aiperf.ENVIRONMENT, aiperf.KEY_VARIABLE: service.key.value}
    if service.ca:
        environment["SSL_CERT_FILE"] = str(Path(service.ca).absolute())
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if not done.returncode:
        return None
    said = [line.strip(" │╭╰─╮╯") for line in done.stdout.splitlines()]
    last = " ".join([line for line in said if line][-_LAST_LINES:])
    return f"the load generator ended with {done.returncode}: {last or 'without a word'}"


def _read(folder: Path, batch: Batch, max_tokens: int, remarks: list[str]) -> Iterator[Cell]:
    manifest = _json(folder / "phase_manifest.json") or {}
    failed = aiperf.failed(manifest)
    remarks += [f"{batch.category}: requests failed: {why}" for why in aiperf.reasons(manifest)]
    for load in batch.loads:
        name = aiperf.phase(load)
        place = folder / "phases" / name
        metrics = _json(place / "server_metrics.json")
        more = aiperf.foreign_requests(load, metrics) if metrics else 0
        if more:
            remarks.append(
                f"{batch.category}, {load.concurrency} at a time: the service also answered about "
                f"{more} requests of others; its figures are not of this load alone"
            )
        yield aiperf.cell(
            batch.category,
            load,
            prompt_tokens=batch.context,
            max_tokens=max_tokens,
            errors=failed.get(name, load.requests),
            report=_json(place / "profile_export_aiperf.json"),
            metrics=metrics,
        )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UserError(
            [mistake(str(path), f"the load generator left no JSON: {error}", "measure again")]
        ) from None


def _repeatable(command: Sequence[str]) -> tuple[str, ...]:
    """The command as it can be repeated: without the temporary folder."""
    return (
        tuple(
            word if "sparkwright-bench-" not in word else f"FOLDER/{Path(word).name}"
            for word in (Path(command[0]).name, *command[1:])
        )
        if command
        else ()
    )
