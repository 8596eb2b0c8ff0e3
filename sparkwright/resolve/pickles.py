"""Weights are safetensors: files of a repository that run code when loaded are not fetched."""

import re
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase

from sparkwright.findings.check import Symptom
from sparkwright.findings.finding import Severity
from sparkwright.resolve.hub import ResolvedModel

_WEIGHTS = (".safetensors", ".gguf")
#: Pickles and archives of pickles, also compressed; Python code, files that Python imports, and
#: programs.
_RUNS_CODE = re.compile(
    r".*\.(bin|pt|pth|ckpt|pkl|pickle|joblib|dill|cloudpickle|nemo|mar|t7|keras|h5|hdf5|tar|"
    r"py[a-z]?|so(\.\d+)*|dylib|dll|egg|whl|sh|jar|engine|plan)(\.(tar|tgz|gz|bz2|xz|zst|lz4|zip))*"
)


def is_pickle(path: str) -> bool:
    """Return whether a file of a model's repository is a pickle, or code, by its name.

    The header reveals a pickle with the name .safetensors, after its download (contents.py).
    """
    return _RUNS_CODE.fullmatch(path.lower()) is not None


def pickles(model: ResolvedModel, allowed: Collection[str]) -> tuple[str, ...]:
    """Paths of the model's pickles and code that are not fetched.

    Args:
        allowed: patterns of ``org/name/path`` that are fetched anyway.
    """
    return tuple(
        path
        for path in model.files
        if is_pickle(path)
        and not any(fnmatchcase(f"{model.repository}/{path}", pattern) for pattern in allowed)
    )


def fetched(model: ResolvedModel, allowed: Collection[str]) -> ResolvedModel:
    """The model without the files that are not fetched."""
    left_out = pickles(model, allowed)
    files = {path: file for path, file in model.files.items() if path not in left_out}
    return replace(model, files=files)


def pickle_symptom(model: ResolvedModel, allowed: Collection[str]) -> Symptom | None:
    """The model's pickles that are not fetched: an error if the model has no other weights."""
    result = pickles(model, allowed)
    if not result:
        return None
    others = any(path.endswith(_WEIGHTS) for path in model.files)
    loadable = sum(map(is_pickle, model.files))  # including the allowed files
    named = ", ".join(result[:3]) + (f" and {len(result) - 3} more" if len(result) > 3 else "")
    return Symptom(
        "pickle",
        severity=Severity.WARNING if others or len(result) < loadable else Severity.ERROR,
        key=f"model {model.repository}@{model.commit[:12]}",
        model=model,
        names=named,
        first=result[0],
    )
