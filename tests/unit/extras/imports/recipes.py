"""The recipes of these tests, imported."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

from sparkwright.extras.imports.entries import Imported
from sparkwright.extras.imports.formats import import_texts
from sparkwright.extras.imports.sources import of_path
from sparkwright.findings.finding import Finding
from sparkwright.recipes.recipe import Options, Text
from tests.unit.builders import ROOT, catalog
from tests.unit.git_registries import git, git_registry

FIXTURES = ROOT / "tests/fixtures/recipes"
REGISTRY = FIXTURES / "registry/recipes"

__all__ = ["git", "git_registry"]


def of_folder(folder: Path, **options: Any) -> dict[str, Imported]:
    """Imported recipes by name, or by file if refused."""
    result = import_texts(of_path(folder), catalog(), Options(**options))
    return {item.name or Path(item.source).name: item for item in result}


def of_text(text: str, name: str = "mine", **options: Any) -> Imported:
    """The only recipe of a text."""
    texts = [Text(name, text, f"{name}.yaml", dt.date(2026, 9, 1))]
    (result,) = import_texts(texts, catalog(), Options(**options))
    return result


def recipe(result: Imported) -> dict[str, Any]:
    """The new recipe."""
    assert result.entries, result.findings
    return result.entries["recipe", result.name]


def findings_of(result: Imported, kind: str) -> dict[str, Finding]:
    """Findings of a kind by their key."""
    return {
        finding.subject.key or "": finding
        for finding in result.findings
        if finding.id == f"import-{kind}"
    }


def minimal(command: str = "vllm serve {model}", **keys: Any) -> str:
    """A recipe of version 2, as YAML that is JSON."""
    data = {
        "model": "example/Small-4B", "container": "vllm/vllm-openai:v0.24.0", "max_nodes": 1,
        "defaults": {"gpu_memory_utilization": 0.5}, "command": command, **keys,
    }  # fmt: skip
    data["command"] = f"{data['command']} --gpu-memory-utilization {{gpu_memory_utilization}}"
    return json.dumps(data)
