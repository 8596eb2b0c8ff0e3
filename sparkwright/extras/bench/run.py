"""Measurement of a service: the generator is started once for each batch, and its reports are
read.
"""

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import requests

from sparkwright.extras.bench import aiperf
from sparkwright.extras.bench.aiperf import CHAT, Endpoint, Service, metrics_without_key
from sparkwright.extras.bench.loads import Batch, Load, sample
from sparkwright.extras.bench.results import Cell
from sparkwright.findings.user_error import Messages
from sparkwright.host.lib.faults import Fault
from sparkwright.host.lib.http import Answer, Form
from sparkwright.host.lib.kinds import KINDS, body, judged

#: The chat template's own tokens, and the error of the estimate of a long prompt.
_SPARE = 1.05
_LAST_LINES = 5
#: Seconds of a request that the generator does not send.
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
    while_last: Callable[[], None] | None = None,
    endpoint: Endpoint = CHAT,
) -> Measured:
    """Measure one service, batch after batch.

    Args:
        program: the load generator.
        seed: seed of this run alone, so that no long prompt is in a prefix cache.
        say: called with the batch under measurement.
        while_last: called in its own thread while the last batch runs.
        endpoint: form of the requests.

    Raises:
        UserError: no request was answered. If a single batch fails, the failure is
        reported, and its cells have only errors.
    """
    measured, fitting = Measured(), list[Batch]()
    if endpoint.kind in KINDS:  # which the generator does not know
        for load in batches[0].loads:
            measured.cells.append(_judged(service, endpoint, batches[0], load, measured.remarks))
        batches = ()
    for batch in batches:
        needed = (batch.context or 0) * _SPARE + endpoint.body.get("max_tokens", 0)
        if batch.context and service.context and needed > service.context:
            limit = f"the service takes {service.context} with the answer"
            measured.remarks.append(f"{batch.context} prompt tokens are left out: {limit}")
        else:
            fitting.append(batch)
    text = sample() if any(batch.context for batch in fitting) else ""
    characters = len(text) / max(1, service.tokens(text)) if text else 0.0
    for number, batch in enumerate(fitting, 1):
        at_a_time = ", ".join(str(load.concurrency) for load in batch.loads)
        say(f"{number} of {len(fitting)}: {batch.title}, {at_a_time} at a time")
        prompts = batch.prompts(f"{seed}-{number}", characters)
        if (
            endpoint.pools and batch.context is None
        ):  # the generator counts no tokens of such prompts
            mean = sum(map(service.tokens, prompts)) / len(prompts)
            batch = replace(batch, context=10 * round(mean / 10))
        meanwhile = threading.Thread(target=while_last if number == len(fitting) else None)
        with (
            tempfile.TemporaryDirectory(prefix=_PREFIX) as folder,
            metrics_without_key(service) as metrics,
        ):
            aiperf.prepare(
                Path(folder), prompts, endpoint, url=service.url, model=service.model,
                loads=batch.loads, metrics=metrics,
            )  # fmt: skip
            command = aiperf.command_line(str(program), folder)
            meanwhile.start()
            problem = _start(command, service)
            measured.command = (aiperf.NAME, *map(_repeatable, command[1:]))
            measured.cells += _read(Path(folder, "out"), batch, measured.remarks, endpoint)
            measured.remarks += [f"{batch.title}: {problem}"] if problem else []
        meanwhile.join()
    if not any(cell.requests for cell in measured.cells):
        reasons = "; ".join(["no request was answered", *measured.remarks])
        where = f"{service.url}, measured by {aiperf.NAME}"
        raise _MESSAGES.refusal("nothing-answered", where, reasons=reasons)
    return measured


def _judged(
    service: Service, endpoint: Endpoint, batch: Batch, load: Load, remarks: list[str]
) -> Cell:
    """Send a kind's own request repeatedly, and check each answer."""

    def send(_: int) -> float | str:
        form, begun = body(KINDS[endpoint.kind].request, service.model), time.monotonic()
        typed = {"Content-Type": form.content_type} if isinstance(form, Form) else {}
        sent = {"data": form.data} if isinstance(form, Form) else {"json": form}
        try:
            answer = service.send("POST", endpoint.path, headers=typed, timeout=_LONGEST, **sent)
            seconds = time.monotonic() - begun
            answer.raise_for_status()
            judged(endpoint.kind, Answer(answer.status_code, answer.content))
        except (requests.RequestException, Fault) as error:
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


def _start(command: Sequence[str], service: Service) -> str | None:
    """Run the generator to its end; return the failure, in the generator's last words."""
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


def _read(folder: Path, batch: Batch, remarks: list[str], endpoint: Endpoint) -> Iterator[Cell]:
    manifest = _json(folder / "phase_manifest.json")
    failed = aiperf.failed(manifest)
    remarks += [f"{batch.category}: requests failed: {why}" for why in aiperf.reasons(manifest)]
    for load in batch.loads:
        metrics = _json(folder / "phases" / load.phase / "server_metrics.json")
        if foreign := aiperf.foreign_requests(load, metrics):
            remarks.append(
                f"{batch.category}, {load.concurrency} at a time: the service also answered about "
                f"{foreign} requests of others; its figures are not of this load alone"
            )
        report = _json(folder / "phases" / load.phase / "profile_export_aiperf.json")
        errors = failed.get(load.phase, load.requests)
        yield aiperf.cell(batch, load, errors, report, metrics, endpoint)


def _json(path: Path) -> Any:
    """Return the JSON of a file; empty if the file is missing."""
    try:
        return json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError as error:
        raise _MESSAGES.refusal("no-report", str(path), error=error) from None


def _repeatable(word: str) -> str:
    """A word of the command in a repeatable form: without the temporary folder."""
    return f"FOLDER/{Path(word).name}" if _PREFIX in word else word
