"""A Spark in perfect order as the doctor sees it, to be made ill in one place each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sparkwright.checks.service.facts import Facts
from sparkwright.engines import metric_names
from sparkwright.host.doctor import Examination
from sparkwright.host.lib import metrics
from sparkwright.host.lib.records import decode
from sparkwright.text.sizes import GIB
from tests.unit.builders import ROOT

NOW = 1_800_000_000.0
STARTED = "2027-01-15T06:00:00.123456789Z"  # two hours before
RELEASE = "b" * 12
CONFIG = '{"method":"dflash","model":"/drafter","num_speculative_tokens":11}'
WORDS = [
    *("vllm", "serve", "/model", "--served-model-name", "qwen36-fast", "qwen36-deep"),
    *("--max-model-len", "131072", "--max-num-seqs", "16", "--max-num-batched-tokens", "32768"),
    *("--gpu-memory-utilization", "0.85", "--enable-prefix-caching"),
    *("--speculative-config", CONFIG),
]


def captured(version: str) -> dict[str, float]:
    """What a real vLLM printed at /metrics."""
    text = (ROOT / f"tests/fixtures/vllm/{version}/metrics.txt").read_text()
    return metrics.totals(text, metric_names())


def values(**changes: float) -> dict[str, float]:
    """Samples of a server that drafts well, between requests, by neutral names."""
    good = {
        "generated": 90_000.0,
        "prompt_tokens": 400_000.0,
        "steps": 30_000.0,
        "drafted": 300_000.0,
        "accepted": 120_000.0,
        "running": 0.0,
        "waiting": 0.0,
        "cache_used": 0.1,
        "ended:stop": 500.0,
        "ended:length": 40.0,
    }
    return {**good, **changes}


def disk(free: int, total: int) -> dict[str, Any]:
    """A file system."""
    return {"device": 1, "free": free, "exists": True, "read_only": False, "total": total}


def look(at: float = NOW, **changes: float) -> dict[str, Any]:
    """One look at the metrics."""
    return {"at": at, "values": values(**changes)}


def container(**changes: Any) -> dict[str, Any]:
    """The service's container."""
    return {
        "name": "sparkwright-qwen36",
        "running": True,
        "started": STARTED,
        "exit_code": 0,
        "image": "ghcr.io/aeon-7/aeon-vllm-ultimate:sha256-1",
        "release": RELEASE,
        "words": WORDS,
        "mounts": [{"source": "/opt/models/m", "target": "/model"}],
        **changes,
    }


def service(**changes: Any) -> dict[str, Any]:
    """A service that is well; ``container``, ``unit`` and ``health`` are merged."""
    return {
        "unit": {
            "LoadState": "loaded", "ActiveState": "active", "SubState": "running",
            "Result": "success", "NRestarts": "0", "NeedDaemonReload": "no",
            **changes.pop("unit", {}),
        },
        "log": ["INFO Application startup complete.", *changes.pop("log", [])],
        "container": changes.pop("container", container()),
        "gpu_inside": changes.pop(
            "gpu_inside", {"code": 0, "out": "GPU 0: NVIDIA GB10 (UUID: GPU-1)", "err": ""}
        ),
        "health": changes.pop("health", {"code": 200, "said": ""}),
        "metrics": changes.pop("metrics", [look(NOW - 5), look()]),
        **changes,
    }  # fmt: skip


def facts(answer: Mapping[str, Any]) -> Facts:
    """What the doctor makes of a host's answer."""
    seen = decode(Facts, dict(answer))
    examination = Examination(
        **{field.name: getattr(seen, field.name) for field in fields(Examination)}
    )
    return Facts.of(examination, seen.planned, seen.findings)


def gpu(**changes: Any) -> dict[str, Any]:
    """A GB10 that idles."""
    one = {
        "name": "NVIDIA GB10", "temperature_c": 41, "power_w": 10.2, "busy_percent": 0,
        "clock_mhz": 208, "clock_max_mhz": 3003, "event_reasons": 1,
    }  # fmt: skip
    return {"found": True, "code": 0, "said": "", "gpus": [{**one, **changes}]}


def spark(**changes: Any) -> Facts:
    """The whole host; ``service`` and ``planned`` are merged, everything else is replaced."""
    planned = {
        "release": RELEASE, "boot_seconds": 900, "speculates": True, **changes.pop("planned", {}),
    }  # fmt: skip
    return facts(
        {
            "now": NOW,
            "services": {"qwen36": changes.pop("service", service())},
            "gpu": gpu(),
            "kernel": ["NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.95.05"],
            "disks": {"/var/lib/docker": disk(900 * GIB, 3700 * GIB)},
            "memory": {"MemTotal": 120 * GIB, "MemAvailable": 18 * GIB},
            "pressure": {"memory": {"some": 0.0, "full": 0.0}, "io": {"some": 1.0, "full": 0.5}},
            "docker": {"version": "29.1.3", "root": "/var/lib/docker", "runtimes": ["nvidia"]},
            "ports": {"enp1s0f0np0": 200000},
            "watch": {"at": NOW - 40, "findings": []},
            "planned": {"qwen36": planned},
            **changes,
        }
    )
