"""Tokens per second of each service over the last hour, from the watch's samples."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from sparkwright.host.lib import documents, metrics
from sparkwright.host.lib.annotations import Any

#: Seconds: shortest and longest span of a rate's samples, and the largest age of the newest sample.
_LEAST, _HOUR, _FRESH = 120.0, 3600.0, 180.0


def recent(file: Path) -> list[Mapping[str, Any]]:
    """Return the last hour's samples in the watch's file; empty if the watch does not run."""
    watch: Any = documents.read(file) or {}
    now = time.time()
    ring = [sample for sample in watch.get("ring") or [] if 0 <= now - sample["at"] <= _HOUR]
    return ring if ring and now - ring[-1]["at"] <= _FRESH else []


def rates(ring: list[Mapping[str, Any]]) -> dict[str, float]:
    """Return the tokens per second of each service over the watch's samples, oldest first.

    A falling counter means that the engine restarted.
    """
    counts: dict[str, list[tuple[float, float]]] = {}
    for sample in ring:
        for name, service in sample.get("services", {}).items():
            if (count := service.get("metrics", {}).get(metrics.GENERATED)) is not None:
                counts.setdefault(name, []).append((sample["at"], count))
    result = {}
    for name, points in counts.items():
        seconds = ring[-1]["at"] - points[0][0]
        rises = pairwise(points)
        tokens = sum(now - before if now >= before else now for (_, before), (_, now) in rises)
        if seconds >= _LEAST:
            result[name] = tokens / seconds
    return result
