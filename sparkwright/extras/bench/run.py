"""Measure a service: start the generator once for each batch, and read its reports."""

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import requests

from sparkwright.extras.bench import aiperf
from sparkwright.extras.bench.loads import Batch, Load, sample
from sparkwright.extras.bench.measured_service import Service
from sparkwright.extras.bench.results import Cell
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.host.lib import faults, http
from sparkwright.host.lib.kinds import KINDS, body, judged
from sparkwright.host.lib.metrics import ACCEPTED, DRAFTED, DRAFTS

#: Factor for the chat template's own tokens and for the error in the estimate of a long prompt.
_SPARE = 1.05
_LAST_LINES = 5
#: Longest time in seconds of a request that the generator does not send.
_LONGEST = 600.0
_MESSAGES = Messages(__file__)
_PREFIX = "sparkwright-bench-"


@dataclass
class Measured:
    """Result of a sweep: its cells, the generator's last command line, and remarks."""

    cells: list[Cell] = field(default_factory=list)
    command: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)


def measure(
    program: Path,
    service: Service,
    batches: Sequence[Batch],
    *,
    seed: str,
    say: Callable[[str], None],
    while_last: Callable[[], None] = lambda: None,
    endpoint: aiperf.Endpoint = aiperf.CHAT,
) -> Measured:
    """Measure one service, batch after batch.

    Args:
        program: the load generator.
        seed: seed that only this run uses, so that no long prompt is in the prefix cache of an
            earlier run.
        say: function that gets the name of each batch at its start.
        while_last: function that is called while the last batch runs.
        endpoint: form of the requests.

    Raises:
        UserError: no request was answered. If a single batch fails, the failure is
        reported, and its cells have only errors.
    """
    measured = Measured()
    if endpoint.kind in KINDS:  # the generator does not support these kinds
        for load in batches[0].loads:
            measured.cells.append(_judged(service, endpoint, batches[0], load, measured.remarks))
        batches = ()
    most = (service.context or math.inf) - endpoint.body.get("max_tokens", 0)
    fitting = [batch for batch in batches if (batch.context or 0) * _SPARE <= most]
    measured.remarks += [
        f"prompts of {batch.context} tokens are left out: "
        f"the service's context is {service.context} tokens, including the answer"
        for batch in batches if batch not in fitting
    ]  # fmt: skip
    long = any(batch.context for batch in fitting)
    characters = len(sample()) / max(1, service.tokens(sample())) if long else 0.0
    for number, batch in enumerate(fitting, 1):
        at_a_time = ", ".join(str(load.concurrency) for load in batch.loads)
        say(f"{number} of {len(fitting)}: {batch.title}, {at_a_time} at a time")
        prompts = batch.prompts(f"{seed}-{number}", characters)
        if endpoint.pools and not batch.context:  # the generator counts no tokens of such prompts
            mean = sum(map(service.tokens, prompts)) / len(prompts)
            batch = replace(batch, context=int(round(mean, -1)))
        before = service.counters()
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            aiperf.prepare(
                Path(folder), prompts, endpoint, url=service.url, model=service.model,
                loads=batch.loads,
            )  # fmt: skip
            command = aiperf.command_line(str(program), folder)
            log = Path(folder, "log")
            with _started(command, service, log) as process:
                if batch.loads is fitting[-1].loads:
                    while_last()
            # Store the command in a repeatable form, without the temporary folder.
            measured.command = (
                aiperf.NAME,
                *(f"FOLDER/{Path(word).name}" if _PREFIX in word else word for word in command[1:]),
            )
            after = service.counters()
            counted = {name: value - before.get(name, 0.0) for name, value in after.items()}
            measured.cells += _read(Path(folder, "out"), batch, counted, measured.remarks, endpoint)
            if process.returncode:
                measured.remarks.append(f"{batch.title}: {_failure(process.returncode, log)}")
    if not any(cell.requests for cell in measured.cells):
        reasons = "; ".join(["no request was answered", *measured.remarks])
        where = f"{service.url}, measured by {aiperf.NAME}"
        raise _MESSAGES.refusal("nothing-answered", where, reasons=reasons)
    return measured


def _judged(
    service: Service, endpoint: aiperf.Endpoint, batch: Batch, load: Load, remarks: list[str]
) -> Cell:
    """Send the request of the model's kind repeatedly, and judge each answer."""

    def send(_: int) -> float | str:
        request, begun = body(KINDS[endpoint.kind].request, service.model), time.monotonic()
        try:
            answer = service.send("POST", endpoint.path, request, _LONGEST)
            seconds = time.monotonic() - begun
            answer.raise_for_status()
            judged(endpoint.kind, http.Answer(answer.status_code, answer.content))
        except (requests.RequestException, UserError, faults.Fault) as error:
            return str(error)
        return seconds

    with ThreadPoolExecutor(load.concurrency) as pool:
        list(pool.map(send, range(load.warm_up)))
        begun = time.monotonic()
        results = list(pool.map(send, range(load.requests)))
    times = sorted(1000 * each for each in results if isinstance(each, float))
    failed = [each for each in results if isinstance(each, str)]
    remarks += [f"requests failed: {why}" for why in dict.fromkeys(failed)]
    at = {"p50": len(times) // 2, "p95": len(times) * 95 // 100}
    report = {"request_latency": {name: times[place] for name, place in at.items() if times},
              "request_throughput": {"avg": len(times) / (time.monotonic() - begun)},
              "request_count": {"avg": len(times)}}  # fmt: skip
    return aiperf.cell(batch, load, len(failed), report, {}, endpoint)


def _started(command: Sequence[str], service: Service, log: Path) -> subprocess.Popen[bytes]:
    """Start the generator; the end of a ``with`` block waits until the generator exits."""
    environment = {**os.environ, **aiperf.ENVIRONMENT, aiperf.KEY_VARIABLE: service.key.value}
    if service.ca:
        environment["SSL_CERT_FILE"] = str(Path(service.ca).absolute())
    with log.open("wb") as output:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip


def _failure(code: int, log: Path) -> str:
    """Return the reason of the generator's failure, from its last lines."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    last = list(filter(None, (line.strip(" │╭╰─╮╯") for line in lines)))[-_LAST_LINES:]
    return f"the load generator exited with {code}: {' '.join(last) or 'without a message'}"


def _read(
    folder: Path, batch: Batch, counted: Mapping[str, float], remarks: list[str],
    endpoint: aiperf.Endpoint,
) -> Iterator[Cell]:  # fmt: skip
    manifest = _json(folder / "phase_manifest.json")
    failed = aiperf.failed(manifest)
    remarks += [f"{batch.category}: requests failed: {why}" for why in aiperf.reasons(manifest)]
    for load in batch.loads:
        report = _json(folder / "phases" / load.phase / "profile_export_aiperf.json")
        errors = failed.get(load.phase, load.requests)
        yield aiperf.cell(batch, load, errors, report, acceptances(counted), endpoint)


def acceptances(counted: Mapping[str, float]) -> dict[str, float]:
    """Return the accepted share of the drafted tokens, and the mean tokens per step (1 + accepted /
    drafts), from the increase of the engine's counters; empty without speculation.
    """
    drafts, drafted, accepted = (counted.get(name, 0.0) for name in (DRAFTS, DRAFTED, ACCEPTED))
    if drafts <= 0 or drafted <= 0:
        return {}
    return {"acceptance": min(1.0, accepted / drafted), "acceptance_length": 1 + accepted / drafts}


def _json(path: Path) -> Any:
    """Return the JSON of a file; empty if the file is missing."""
    try:
        return json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError as error:
        raise _MESSAGES.refusal("no-report", str(path), error=error) from None
