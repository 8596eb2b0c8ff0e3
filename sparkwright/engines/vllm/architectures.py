"""Architectures that vLLM has an implementation for, by version.

The class that a model's config.json names decides which code serves it. The lists come from vLLM's
own registry, read as text from its wheels (``.ci/vllm_table.py``).
"""

import json
from functools import cache
from pathlib import Path

from sparkwright.engines.vllm.table import release

_FILE = Path(__file__).resolve().parent / "architectures.json"


def version_with(vllm: str) -> str:
    """The version whose list counts for this one: its own, else the newest before it, else the
    oldest."""
    known = sorted(_known(), key=release)
    before = [item for item in known if release(item) <= release(vllm)]
    return before[-1] if before else known[0]


def architectures(version: str) -> frozenset[str]:
    """Classes that one of the listed versions serves."""
    return _known()[version]


@cache
def _known() -> dict[str, frozenset[str]]:
    """Version -> classes; the file has for each class the versions that serve it."""
    result: dict[str, set[str]] = {}
    for name, versions in json.loads(_FILE.read_text(encoding="utf-8")).items():
        for version in versions.split():
            result.setdefault(version, set()).add(name)
    return {version: frozenset(names) for version, names in result.items()}
