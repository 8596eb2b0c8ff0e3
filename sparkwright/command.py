"""The ``vllm serve`` command line of a service, as a list of words."""

from __future__ import annotations

import json

from sparkwright.catalog import ArgumentValue
from sparkwright.plan import ServicePlan


def serve_command(service: ServicePlan) -> list[str]:
    """``serve MODEL --served-model-name ... --host ... --port ...`` and the recipe's arguments."""
    words = ["serve", service.body.mount, "--served-model-name", *service.served_names]
    words += ["--host", service.bind, "--port", str(service.port)]
    for key, value in service.arguments:
        words += argument_words(key, value)
    return words


def argument_words(key: str, value: ArgumentValue) -> list[str]:
    """One argument: ``max_model_len: 8192`` -> ``--max-model-len 8192``, True -> a bare flag."""
    flag = f"--{key.replace('_', '-')}"
    if value is True:
        return [flag]
    if value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, dict):
        return [flag, json.dumps(value, separators=(",", ":"))]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]
