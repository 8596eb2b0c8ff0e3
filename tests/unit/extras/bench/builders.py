"""Results as a load generator leaves them, to be changed in one place each (invented)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sparkwright.extras.bench.results import Cell, Result

BODY, DRAFTER = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4", "z-lab/Qwen3.6-35B-A3B-DFlash"
IMAGE = "ghcr.io/aeon-7/aeon-vllm-ultimate"
TAG = "2026-06-18-v0.23.0-dflashfix"
NOON = dt.datetime(2026, 7, 2, 12, tzinfo=dt.UTC)


def cell(**changes: Any) -> Cell:
    """One stream of coding, as in the single-stream table of the card of Qwen3.6-35B-A3B."""
    data: dict[str, Any] = {
        "category": "coding",
        "concurrency": 1,
        "prompt_tokens": 64,
        "max_tokens": 256,
        "requests": 8,
        "ttft": {"p50": 0.088, "p95": 0.1},
        "tpot": {"p50": 0.0109, "p95": 0.012},
        "decode": 91.7,
        "decode_total": 89.0,
        "prefill": 509.0,
        "acceptance": 0.325,
        "acceptance_length": 4.6,
    }
    return Cell.model_validate({**data, **changes})


def result(*cells: Cell, **changes: Any) -> Result:
    """A run of the production recipe on a Spark."""
    data: dict[str, Any] = {
        "host": "spark-1",
        "service": "qwen36",
        "when": NOON,
        "recipe": "qwen36-35b-a3b-heretic-dflash",
        "image": {"name": f"{IMAGE}:{TAG}", "digest": f"sha256:{'ab' * 32}"},
        "models": {BODY: "c" * 40, DRAFTER: "d" * 40},
        "release": "1b45a560efec",
        "vllm": "0.23.0",
        "gpu": {"name": "NVIDIA GB10", "driver": "580.95.05", "sm_clock_mhz": 2400,
                "sm_clock_max_mhz": 2500, "temperature_c": 64},
        "settings": {"enable_prefix_caching": True, "num_speculative_tokens": 11},
        "generator": {"name": "sparkwright-bench", "version": "1", "command": ["bench", "--all"]},
        "cells": cells or (cell(),),
    }  # fmt: skip
    return Result.model_validate({**data, **changes})


def runs(*decodes: float, **changes: Any) -> list[Result]:
    """One run a day, each with this decode rate, the oldest first."""
    return [
        result(cell(decode=decode), when=NOON + dt.timedelta(days=number), **changes)
        for number, decode in enumerate(decodes)
    ]
