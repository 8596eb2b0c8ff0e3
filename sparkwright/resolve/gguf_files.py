"""GGUF files of a repository of many quantizations, and which of them are served."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from sparkwright.catalog.entries import KvLayers
from sparkwright.catalog.gguf import GgufFile
from sparkwright.documents.bounds import Unusable
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.text.sizes import GIB

_PATH: TypeAdapter[str] = TypeAdapter(GgufFile)
_PART = re.compile(r"-(\d{5})-of-(\d{5})$")
_LABEL = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d_[A-Z0-9]+(?:_[A-Z0-9]+)*|T?Q\d_0|B?F16|F32|MXFP4(?:_MOE)?|NVFP4))"
    r"(?=$|[-._/])", re.IGNORECASE,
)  # fmt: skip
#: Weights of full width: of use to whoever makes quantizations, half as fast to whoever serves.
_FULL = ("F32", "F16", "BF16")
#: Of the files that read images, the first of these.
_PROJECTORS = ("F16", "BF16", "Q8_0", "F32")
#: The most memory that a choice may take: ``12GiB``.
_ROOM = re.compile(r"(\d{1,5}(?:\.\d)?)GiB")
#: Tokens of context, with 16-bit keys and values, and GiB of the engine itself, for which a file is
#: chosen: what is left beyond them makes the context longer.
TOKENS, OVERHEAD_GIB = 8192, 1.0
_NAMED = 40
#: Facts of a model with this projector, by its headers.
Facts = tuple[ModelFacts, tuple[KvLayers, ...]]


@dataclass(frozen=True)
class GgufModel:
    """A GGUF file with all of its parts.

    Attributes:
        parts: paths, the first part's first; one path of a file that is not split.
        label: its quantization, as the path names it; empty where it names none.
        size: bytes of all parts.
    """

    parts: tuple[str, ...]
    label: str
    size: int

    @property
    def title(self) -> str:
        """What a user writes to have it, and its size."""
        return f"{self.label or self.parts[0]} ({self.size / GIB:.1f} GiB)"

    @property
    def family(self) -> str:
        """Its name without the quantization: the same for all quantizations of one model."""
        stem = _PART.sub("", self.parts[0].rpartition("/")[2].removesuffix(".gguf"))
        return stem.lower().replace(self.label.lower(), "").strip("-._") if self.label else stem


def choose(
    sizes: Mapping[str, int], choice: str, read: Callable[[GgufModel, str | None], Facts]
) -> tuple[tuple[str, ...], Facts]:
    """Paths of the files that are served, and facts of their headers.

    Args:
        sizes: of every file of the repository.
        choice: as in ``ModelReference``.

    Raises:
        Unusable: where it leads to no model, or to several.
    """
    models = models_of(sizes)
    file, _, projector = choice.partition(",")
    image = projector_of(sizes) if not projector else projector if projector != "none" else None
    if image is not None and image not in sizes:
        raise _unclear(f"no file is {image}", models)
    if not (room := _ROOM.fullmatch(choice)):
        if not choice:
            raise _unclear("its GPU's memory, by which a GGUF file is chosen, is unknown", models)
        model = _named(models, file)
        facts = _read(model, sizes, image, read)
        return tuple(filter(None, (*model.parts, image))), facts
    left = float(room[1]) * GIB - OVERHEAD_GIB * GIB - sizes.get(image or "", 0)
    cache = 0
    for model in _by_size(models):
        if left - model.size < cache:
            continue
        facts = _read(model, sizes, image, read)
        tokens = min(TOKENS, facts[0].context or TOKENS)
        cache = sum(
            4 * kind.layers * kind.heads * kind.head_dim * min(tokens, kind.window or tokens)
            for kind in facts[1]
        )
        if left - model.size >= cache:
            return tuple(filter(None, (*model.parts, image))), facts
    raise _unclear(f"no GGUF file fits {room[0]} with {TOKENS} tokens of context", models)


def is_chosen(file: str | None, choice: str) -> bool:
    """Whether a catalog's file is what a service's model names; every file where it names none."""
    labels = [model.label for model in models_of({file: 0})] if file else []
    return choice in ("", file) or choice.upper() in labels


def _read(
    model: GgufModel,
    sizes: Mapping[str, int],
    image: str | None,
    read: Callable[[GgufModel, str | None], Facts],
) -> Facts:
    if missing := [path for path in model.parts if path not in sizes]:
        raise _unclear(f"{missing[0]}, a part of {model.parts[0]}, is missing", [])
    return read(model, image)


def models_of(sizes: Mapping[str, int]) -> list[GgufModel]:
    """The GGUF models among a repository's files, the largest first."""
    result = []
    for path, size in sizes.items():
        stem, name = path.removesuffix(".gguf"), path.rpartition("/")[2].lower()
        part = _PART.search(stem)
        labels = _LABEL.findall(_PART.sub("", stem))
        matrix = "imatrix" in name and not labels
        if not _served(path) or "mmproj" in name or matrix or (part and part[1] != "00001"):
            continue
        parts: tuple[str, ...] = (path,)
        if part:
            rest = range(2, min(int(part[2]), 1000) + 1)
            head = stem.removesuffix(part[0])
            parts += tuple(f"{head}-{number:05d}-of-{part[2]}.gguf" for number in rest)
        size = sum(sizes.get(each, 0) for each in parts)
        result.append(GgufModel(parts, labels[-1].upper() if labels else "", size))
    return sorted(result, key=lambda model: (-model.size, model.parts))


def _named(models: list[GgufModel], choice: str) -> GgufModel:
    """The model of a quantization or a path.

    Raises:
        Unusable: where there is none, or more than one.
    """
    wanted = choice.upper()
    by_path = [model for model in models if model.parts[0] == choice]
    exact = [model for model in models if model.label == wanted]
    ending = [model for model in models if model.label.endswith(f"-{wanted}")]
    result = by_path or exact or ending
    if len(result) == 1:
        return result[0]
    problem = f"more than one GGUF file is {choice}" if result else f"no GGUF file is {choice}"
    raise _unclear(problem, result or models, paths=bool(result))


def _by_size(models: list[GgufModel]) -> Iterator[GgufModel]:
    """Models that may be served where no quantization is named, the best first.

    Raises:
        Unusable: where they are quantizations of more than one model.
    """
    quantized = [model for model in models if model.label.rpartition("-")[2] not in _FULL]
    if len({model.family for model in quantized or models}) > 1:
        raise _unclear("it has GGUF files of more than one model", models, paths=True)
    yield from quantized or models


def projector_of(sizes: Mapping[str, int]) -> str | None:
    """The file that reads images, where there is one."""
    result = [path for path in sizes if _served(path) and "mmproj" in path.lower()]

    def order(path: str) -> tuple[int, int, str]:
        label = next(iter(_LABEL.findall(path.removesuffix(".gguf"))), "").upper()
        rank = _PROJECTORS.index(label) if label in _PROJECTORS else len(_PROJECTORS)
        return rank, sizes[path], path

    return min(result, key=order, default=None)


def _unclear(problem: str, models: list[GgufModel], *, paths: bool = False) -> Unusable:
    """A choice that leads to no model, or to several; its message names those that there are."""
    titles = [
        f"{each.parts[0]} ({each.size / GIB:.1f} GiB)" if paths else each.title for each in models
    ]
    more = f" and {len(titles) - _NAMED} more" if len(titles) > _NAMED else ""
    listed = ", ".join(titles[:_NAMED]) + more
    remedy = "name a quantization (org/name:Q4_K_M) or a file (org/name/file.gguf)"
    return Unusable(f"{problem}; it has {listed or 'none'}", remedy)


def _served(path: str) -> bool:
    """Whether a file is GGUF, by a name that paths and commands can have."""
    try:
        return bool(_PATH.validate_python(path))
    except ValidationError:
        return False
