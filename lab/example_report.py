"""Files of an invented fleet, in the form of runs and benchmarks, for pictures, trials and tests.

    python -m lab.example_report DIR --hosts 4 --runs 6

No figure was measured. The shape of the figures follows the card of Qwen3.6-35B-A3B; spark-2
is slower than the card, and rtx-1 failed a check.
"""

import argparse
import datetime as dt
import json
import math
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkwright.checks.configuration.parts import Memory, Part
from sparkwright.checks.smoke.result import Smoke
from sparkwright.extras.bench.results import Result
from sparkwright.extras.bench.store import save
from sparkwright.extras.dashboard.contents import LastRun, Switch
from sparkwright.host.service import CheckResult
from sparkwright.results.run_summary import Row, ServiceRow, as_json

TAG = "2026-06-18-v0.23.0-dflashfix"
IMAGE = f"ghcr.io/aeon-7/aeon-vllm-ultimate:{TAG}"
DIGEST = f"sha256:{'9edc67e56dd1' * 5}abcd"
MODELS = {
    "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4": "7113055e8824" + "0" * 28,
    "z-lab/Qwen3.6-35B-A3B-DFlash": "7c1458e4a6a6" + "0" * 28,
}
CHECKS = ("health", "models", "key", "generation", "metrics", "speculation")
#: Category -> decode in tokens/s, time to first token in s and acceptance of one stream, tokens/s
#: of one and of eight streams together, from the card of the first model above.
_CARD = {
    "coding": (91.7, 0.088, 0.325, 89, 360),
    "math": (123.6, 0.113, 0.477, 118, 416),
    "reasoning": (120.6, 0.120, 0.463, 115, 388),
    "prose": (75.2, 0.137, 0.237, 73, 252),
    "natural-language": (91.8, 0.104, 0.323, 89, 296),
    "extraction-json": (79.8, 0.103, 0.281, 78, 399),
}
#: Prompt tokens -> decode and acceptance that all categories approach (same card), and the part of
#: the difference that each category covers.
_LONG = {4000: (100, 0.43, 0.3), 16000: (98, 0.43, 0.67), 32000: (83, 0.47, 0.75)}
_START = dt.datetime(2026, 7, 2, 9, 30, tzinfo=dt.UTC)


def names(hosts: int) -> list[str]:
    """Names of the hosts: two Sparks, an RTX box, then only Sparks."""
    first = ["spark-1", "spark-2", "rtx-1"]
    return [*first, *(f"spark-{number}" for number in range(3, hosts))][:hosts]


def results(host: str, runs: int) -> Iterator[Result]:
    """A host's results, the oldest first."""
    spark = not host.startswith("rtx")
    chance = random.Random(host)
    for number in range(runs):
        last = number == runs - 1
        slow = 0.68 if host == "spark-2" and last else 1.0
        yield Result.model_validate(
            {
                "host": host,
                "service": "qwen36",
                "when": _START + dt.timedelta(days=number),
                "recipe": "qwen36-35b-a3b-heretic-dflash" + ("" if spark else "-rtx5090"),
                "image": {"name": IMAGE, "digest": DIGEST},
                "models": MODELS,
                "release": "1b45a560efec" if spark else "614ac417219c",
                "engine": {"name": "vLLM", "version": "0.23.0"},
                "gpu": {
                    "name": "NVIDIA GB10" if spark else "NVIDIA GeForce RTX 5090",
                    "driver": "580.142" if slow < 1 else "580.95.05",
                    "clock_mhz": 1650 if slow < 1 else 2405,
                    "clock_max_mhz": 2520,
                    "temperature_c": 83 if slow < 1 else 66,
                },
                "settings": {"num_speculative_tokens": 11, "enable_prefix_caching": True},
                "generator": {
                    "name": "sparkwright-bench",
                    "version": "0.1.0",
                    "command": ["sparkwright", "bench", host, "--service", "qwen36"],
                },
                "cells": list(_cells(chance, slow if spark else 1.9)),
            }
        )


def _cells(chance: random.Random, speed: float) -> Iterator[dict[str, Any]]:
    for category, (decode, ttft, acceptance, item, eight) in _CARD.items():
        shrink = math.log(item * 8 / eight, 8)
        for streams in (1, 2, 4, 8, 16, 32, 64):
            share = streams ** -(shrink + 0.0045 * max(0.0, math.log2(streams) - 3) ** 3)
            first = ttft * streams**0.55
            yield _cell(chance, category, streams, 64, decode * share * speed, first / speed,
                        acceptance)  # fmt: skip
        for tokens, (speed_there, held_there, pull) in _LONG.items():
            rate = decode + (speed_there - decode) * pull
            held = acceptance + (held_there - acceptance) * pull
            yield _cell(chance, category, 1, tokens, rate * speed, tokens / 4500 / speed, held)


def _cell(
    chance: random.Random, category: str, streams: int, tokens: int, rate: float, first: float,
    held: float,
) -> dict[str, Any]:  # fmt: skip
    rate *= chance.gauss(1, 0.012)
    first *= chance.gauss(1, 0.04)
    held *= chance.gauss(1, 0.02)
    return {
        "category": category,
        "concurrency": streams,
        "prompt_tokens": tokens,
        "max_tokens": 256,
        "requests": max(8, 2 * streams),
        "measures": {
            "ttft": first,
            "ttft_p95": first * 1.3,
            "tpot": 1 / rate,
            "decode": rate,
            "decode_total": rate * streams * 0.97,
            "prefill": 0.6 * tokens / first,
            "acceptance": held,
            "acceptance_length": 1 + 11 * held,
        },
    }


def rows(hosts: int) -> list[Row]:
    """Rows of the last run's summary."""
    return [_row(host, number) for number, host in enumerate(names(hosts))]


def _row(host: str, number: int) -> Row:
    spark = not host.startswith("rtx")
    checks = tuple(
        CheckResult(name, spark or name != "speculation", 0.1 + 0.3 * position)
        for position, name in enumerate(CHECKS)
    )
    failures = tuple(f"{check.name}: no draft in the metrics" for check in checks if not check.ok)
    service = ServiceRow(
        name="qwen36",
        address=f"10.213.77.{11 + number % 200}:8000",
        served_names=("qwen36-35b-heretic", "qwen36-fast", "qwen36-deep"),
        tag=TAG,
        image=f"aeon-vllm-ultimate:{DIGEST.replace(':', '-')}",
        models=MODELS,
        release="1b45a560efec" if spark else "614ac417219c",
        smoke=Smoke(
            sum(check.ok for check in checks), len(checks),
            sum(check.seconds for check in checks), failures, checks,
        ),
    )  # fmt: skip
    return Row(
        host=host,
        services=(service,),
        refused=failures[0] if failures else None,
        findings=(),
        changes=("started qwen36",) if failures else (),
        executions=2,
        gpu="NVIDIA GB10" if spark else "NVIDIA GeForce RTX 5090",
        driver="580.142" if host == "spark-2" else "580.95.05",
    )


def history(hosts: int) -> list[dict[str, Any]]:
    """Changes of releases."""
    return [
        {
            "host": host,
            "service": "qwen36",
            "who": "me@laptop",
            "when": (_START + dt.timedelta(days=day, minutes=7 * number)).isoformat(),
            "before": None if day == 0 else "0aa1c5ffab17",
            "after": "0aa1c5ffab17" if day == 0 else "1b45a560efec",
            "down_seconds": None if day == 0 else 184.0 + number % 7,
            "ended": "went back" if host.startswith("rtx") and day else "serving",
        }
        for day in (0, 3)
        for number, host in enumerate(names(hosts))
    ]


def memory(host: str) -> Memory:
    """Memory of a host in the plan of ``inventory/lab.py``."""
    spark = not host.startswith("rtx")
    parts = [Part("#", "qwen36 weights", 22.9)]
    parts += [Part("=", "qwen36 KV cache and engine", 60.9 if spark else 5.6)]
    parts += [Part("o", "system", 8.0)] if spark else []
    return Memory(119.7 if spark else 31.0, spark, tuple(parts))


def contents(*, hosts: int, runs: int) -> dict[str, Any]:
    """Data of the invented fleet without files, as arguments of ``page_of``."""
    return {
        "last_run": LastRun(_START + dt.timedelta(days=runs), False, tuple(rows(hosts))),
        "results": {(host, "qwen36"): [*results(host, runs)][-1] for host in names(hosts)},
        "history": tuple(map(Switch.model_validate, history(hosts))),
        "memory": {host: memory(host) for host in names(hosts)},
    }


def write(directory: Path, *, hosts: int, runs: int) -> None:
    """Write all files below a directory: ``bench/``, ``last-run.json`` and ``status.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    for host in names(hosts):
        for result in results(host, runs):
            save(directory / "bench", result)
    record = directory / "last-run.json"
    record.write_text(as_json(rows(hosts), dry=False), encoding="utf-8")
    moment = (_START + dt.timedelta(days=runs)).timestamp()
    os.utime(record, (moment, moment))
    status = json.dumps({"history": history(hosts)}, indent=1) + "\n"
    (directory / "status.json").write_text(status, encoding="utf-8")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--runs", type=int, default=6)
    arguments = parser.parse_args()
    write(arguments.directory, hosts=arguments.hosts, runs=arguments.runs)


if __name__ == "__main__":
    main()
