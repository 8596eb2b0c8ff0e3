"""Findings of bootstrap: what is in the way of a step on a host, by texts of findings.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from sparkwright.findings.finding import Finding, Severity, Subject


@cache
def _texts() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = yaml.safe_load(
        Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8")
    )
    return texts


def finding(cause: str, **values: str) -> Finding:
    """The finding of a cause, with values in its texts."""
    texts = {name: text.format(**values) for name, text in _texts()[cause].items()}
    severity = Severity(texts.pop("severity", "error"))
    source = texts.pop("source", "sparkwright")
    return Finding(texts.pop("id"), severity, Subject(), **texts, source=source)
