"""Weights are safetensors: pickles of a repository, which run code when loaded, are not fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from sparkwright.findings.check import Symptom
from sparkwright.findings.finding import Severity
from sparkwright.host.lib.pickles import is_pickle
from sparkwright.resolve.hub import ResolvedModel

_WEIGHTS = (".safetensors", ".gguf")


def pickles(model: ResolvedModel, allowed: Mapping[str, str]) -> tuple[str, ...]:
    """Paths of the model's pickles that are not fetched.

    Args:
        allowed: pattern of ``org/name/path`` -> why it is fetched all the same.
    """
    return tuple(
        file.path
        for file in model.files
        if is_pickle(file.path)
        and not any(fnmatchcase(f"{model.repository}/{file.path}", one) for one in allowed)
    )


def fetched(model: ResolvedModel, allowed: Mapping[str, str]) -> ResolvedModel:
    """The model with the files that are fetched."""
    left_out = pickles(model, allowed)
    return replace(model, files=tuple(file for file in model.files if file.path not in left_out))


def pickle_symptom(model: ResolvedModel, allowed: Mapping[str, str]) -> Symptom | None:
    """The model's pickles that are not fetched: an error where it has no other weights."""
    found = pickles(model, allowed)
    if not found:
        return None
    others = any(file.path.endswith(_WEIGHTS) for file in model.files)
    named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return Symptom(
        "pickle",
        severity=Severity.WARNING if others or len(found) < _loadable(model) else Severity.ERROR,
        key=f"model {model.repository}@{model.commit[:12]}",
        model=model,
        names=named,
        first=found[0],
    )


def _loadable(model: ResolvedModel) -> int:
    """How many pickles the model has, allowed ones included."""
    return sum(is_pickle(file.path) for file in model.files)
