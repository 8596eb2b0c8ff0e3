"""GGUF files of a repository of many quantizations, and the served files among them."""

import math
import re
from collections.abc import Callable, Mapping

from sparkwright.catalog import entries, gguf
from sparkwright.documents.bounds import Unusable
from sparkwright.host.lib.records import dataclass
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.text.sizes import GIB

_PART = re.compile(r"-(\d{5})-of-(\d{5})$")
_LABEL = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d_[A-Z0-9]+(?:_[A-Z0-9]+)*|T?Q\d_0|B?F16|F32|MXFP4(?:_MOE)?|NVFP4))"
    r"(?=$|[-._/])", re.IGNORECASE,
)  # fmt: skip
#: Weights of full width: useful for making quantizations, half as fast for serving.
_FULL = ("F32", "F16", "BF16")
#: Labels of projectors, the preferred label first.
_PROJECTORS = ("F16", "BF16", "Q8_0", "F32")
#: Pattern of a choice by largest size: ``12GiB``.
_ROOM = re.compile(r"(\d{1,5}(?:\.\d)?)GiB")
#: Tokens of context, with 16-bit keys and values, and GiB of the engine itself, for which a file is
#: chosen: the remaining memory makes the context longer.
TOKENS, OVERHEAD_GIB = 8192, 1.0
#: Largest number of models in a message, and of parts of a model.
_LISTED, _PARTS = 40, 1000
#: Facts about a model and its projector, from their headers.
Facts = tuple[ModelFacts, tuple[entries.KvLayers, ...]]


@dataclass(frozen=True)
class GgufModel:
    """A GGUF file with all of its parts.

    Attributes:
        parts: paths, the first part's first; one path of a file that is not split.
        label: the quantization in the path; empty without a quantization.
        size: bytes of all parts.
    """

    parts: tuple[str, ...]
    label: str
    size: int

    @property
    def family(self) -> str:
        """The file's name without the quantization: equal for all quantizations of one model."""
        name = _PART.sub("", self.parts[0].rpartition("/")[2].removesuffix(".gguf")).lower()
        return name.replace(self.label.lower(), "").strip("-._")


def choose(
    sizes: Mapping[str, int], choice: str, read: Callable[[GgufModel, str | None], Facts]
) -> tuple[tuple[str, ...], Facts]:
    """Paths of the served files, and facts from their headers.

    Args:
        sizes: sizes of every file of the repository.
        choice: choice of files, as in ``ModelReference``.
        read: function that returns the facts of a model with a projector.

    Raises:
        Unusable: the choice leads to no model, or to several models.
    """
    models, (file, _, named) = models_of(sizes), choice.partition(",")
    image = _projector(sizes) if not named else named if named != "none" else None
    if image is not None and image not in sizes:
        raise _unclear(f"the repository has no file {image}", models)
    room = _ROOM.fullmatch(choice)
    left = cache = math.inf
    if room:
        candidates, cache = _quantizations(models), 0
        left = (float(room[1]) - OVERHEAD_GIB) * GIB - sizes.get(image or "", 0)
    else:
        candidates = [_named(models, file)]
    for model in candidates:
        if left - model.size < cache:
            continue
        if missing := [path for path in model.parts if path not in sizes]:
            problem = f"{missing[0]}, a part of {model.parts[0]}, is missing"
            raise Unusable(problem, "name another quantization")
        facts = read(model, image)
        cache = _cache(facts) if room else 0
        if left - model.size >= cache:
            return tuple(filter(None, (*model.parts, image))), facts
    raise _unclear(f"no GGUF file fits {choice} with {TOKENS} tokens of context", models)


def _cache(facts: Facts) -> int:
    """Bytes of keys and values, two bytes for each number."""
    tokens = min(TOKENS, facts[0].context or TOKENS)
    return sum(4 * kind.numbers(tokens) for kind in facts[1])


def models_of(sizes: Mapping[str, int]) -> list[GgufModel]:
    """The GGUF models among a repository's files, the largest first."""
    result = []
    for path in sizes:
        stem, name = path.removesuffix(".gguf"), path.rpartition("/")[2].lower()
        part, labels = _PART.search(stem), _LABEL.findall(_PART.sub("", stem))
        other = "mmproj" in name or ("imatrix" in name and not labels)
        if other or not _served(path) or (part and part[1] != "00001"):
            continue
        count = min(int(part[2]), _PARTS) if part else 0
        rest = (f"-{number:05d}-of-{count:05d}.gguf" for number in range(2, count + 1))
        parts = (path, *(_PART.sub("", stem) + suffix for suffix in rest))
        size = sum(sizes.get(each, 0) for each in parts)
        result.append(GgufModel(parts, labels[-1].upper() if labels else "", size))
    return sorted(result, key=lambda model: (-model.size, model.parts))


def is_chosen(file: str | None, choice: str) -> bool:
    """Return whether a catalog's file is the service's chosen file; true for every file without
    a choice.
    """
    labels = [model.label for model in models_of({file: 0})] if file else []
    return choice in ("", file) or choice.upper() in labels


def _named(models: list[GgufModel], choice: str) -> GgufModel:
    """The model of a quantization or a path."""
    if not choice:
        raise _unclear(
            "the GPU's memory is unknown, so sparkwright can't choose a GGUF file", models
        )
    label = choice.upper()
    result = (
        [model for model in models if model.parts[0] == choice]
        or [model for model in models if model.label == label]
        or [model for model in models if model.label.endswith(f"-{label}")]
    )
    if len(result) == 1:
        return result[0]
    count = "more than one" if result else "no"
    raise _unclear(f"{count} GGUF file matches {choice}", result or models)


def _quantizations(models: list[GgufModel]) -> list[GgufModel]:
    """The quantizations of a model, the largest first; the unquantized model if the repository has
    no quantization.
    """
    result = [model for model in models if model.label.rpartition("-")[2] not in _FULL] or models
    if len({model.family for model in result}) > 1:
        raise _unclear("the repository has GGUF files of more than one model", models)
    return result


def _projector(sizes: Mapping[str, int]) -> str | None:
    """Path of the projector, the file for image input, if any."""
    paths = sorted(path for path in sizes if _served(path) and "mmproj" in path.lower())
    first = [
        path for label in _PROJECTORS for path in paths if label in _LABEL.findall(path.upper())
    ]
    return next(iter(first or paths), None)


def _unclear(problem: str, models: list[GgufModel]) -> Unusable:
    """Return the error for a choice that leads to no model, or to several; its message lists the
    models.
    """
    labels = {model.label for model in models}
    titles = [
        f"{model.label if len(labels) == len(models) and model.label else model.parts[0]} "
        f"({model.size / GIB:.1f} GiB)"
        for model in models
    ]
    more = f" and {len(titles) - _LISTED} more" if len(titles) > _LISTED else ""
    listed = ", ".join(titles[:_LISTED]) or "none"
    remedy = "name a quantization (org/name:Q4_K_M) or a file (org/name/file.gguf)"
    return Unusable(f"{problem}; GGUF files: {listed}{more}", remedy)


def _served(path: str) -> bool:
    """Return whether a file is GGUF and its name is safe in paths and commands."""
    return len(path) <= 200 and re.fullmatch(gguf.GGUF_FILE, path) is not None
