"""A faultless Spark in the doctor's view, to which each test adds one fault."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sparkwright.checks.service.facts import Facts
from sparkwright.engines import metric_names
from sparkwright.host.doctor import Examination
from sparkwright.host.lib import metrics
from sparkwright.host.lib.records import decode
from tests.tables import Tables
from tests.unit.builders import ROOT

NOW = 1_800_000_000.0
STARTED = "2027-01-15T06:00:00.123456789Z"  # two hours before
RELEASE = "b" * 12
#: A healthy service, in the doctor's view.
_SOUND = Tables(__file__).data
COMMAND: list[str] = _SOUND["command"]


def captured(version: str) -> dict[str, float]:
    """Output of a real vLLM at /metrics."""
    text = (ROOT / f"tests/fixtures/vllm/{version}/metrics.txt").read_text()
    return metrics.totals(text, metric_names())


def values(**changes: float) -> dict[str, float]:
    """Samples of a server that drafts well, between requests, by neutral names."""
    return {**_SOUND["metrics"], **changes}


def disk(free: int, total: int) -> dict[str, Any]:
    """A file system."""
    return {"device": 1, "free": free, "exists": True, "read_only": False, "total": total}


def look(at: float = NOW, **changes: float) -> dict[str, Any]:
    """One sample of the metrics."""
    return {"at": at, "values": values(**changes)}


def container(**changes: Any) -> dict[str, Any]:
    """The service's container."""
    own = {"started": STARTED, "release": RELEASE, "command": COMMAND}
    return {**_SOUND["container"], **own, **changes}


def service(**changes: Any) -> dict[str, Any]:
    """A healthy service; ``container``, ``unit`` and ``health`` are merged."""
    whole = {"container": container(), "metrics": [look(NOW - 5), look()], **changes}
    return {
        **_SOUND["service"],
        **whole,
        "unit": {**_SOUND["service"]["unit"], **changes.get("unit", {})},
        "log": [*_SOUND["service"]["log"], *changes.get("log", [])],
    }


def facts(answer: Mapping[str, Any]) -> Facts:
    """Findings of the doctor from a host's answer."""
    seen = decode(Facts, dict(answer))
    examination = Examination(
        **{field.name: getattr(seen, field.name) for field in fields(Examination)}
    )
    return Facts.of(examination, seen.planned, seen.findings)


def gpu(**changes: Any) -> dict[str, Any]:
    """A GB10 that idles."""
    return {"installed": True, "code": 0, "message": "", "gpus": [{**_SOUND["gpu"], **changes}]}


def spark(**changes: Any) -> Facts:
    """Facts of a host: ``service`` and ``planned`` are merged, and other fields are replaced."""
    planned = {
        "release": RELEASE, "boot_seconds": 900, "speculates": True, **changes.pop("planned", {}),
    }  # fmt: skip
    return facts(
        {
            "now": NOW,
            "services": {"qwen36": changes.pop("service", service())},
            "gpu": gpu(),
            "watch": {"at": NOW - 40, "findings": []},
            **_SOUND["host"],
            "planned": {"qwen36": planned},
            **changes,
        }
    )
