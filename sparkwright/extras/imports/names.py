"""Names of entries and files, derived from foreign names."""

import hashlib
import re

from pydantic import TypeAdapter, ValidationError

from sparkwright.catalog.data import Repository
from sparkwright.recipes.recipe import Unfit

_LONGEST = 80
_REPOSITORY: TypeAdapter[str] = TypeAdapter(Repository)
_FORMATS = re.compile(
    r"[-_.](fp8|nvfp4|mxfp4|awq|gptq|int4|int8|w4a16|w8a8|autoround|auto-round|bf16|dynamic|4bit|"
    r"8bit|it|instruct|base|hf|gguf)(?=$|[-_.])"
)


def slug(text: str) -> str:
    """Make a name in the catalog's form, which can't lead to another folder.

    Raises:
        Unfit: no character of the name is left.
    """
    name = re.sub(r"[^a-z0-9._]+", "-", text.lower())
    name = re.sub(r"\.{2,}", ".", name).strip("-._")[:_LONGEST].rstrip("-._")
    if not name:
        raise Unfit("name", repr(text[:80]), "the name has no letter or digit", "--name NAME")
    return name


def distinct(name: str, taken: bool, *shown: str | None) -> str:
    """Return the name, with a hash of the content if another entry already has the name."""
    if not taken:
        return name
    digest = hashlib.sha256("\0".join(map(str, shown)).encode()).hexdigest()
    return f"{name}-{digest[:8]}"


def gguf(model: str, file: str | None) -> tuple[str, str]:
    """Repository and path of a GGUF file; for a quantization alone, such as ``org/name-GGUF:Q8_0``,
    the file's usual name.

    Raises:
        Unfit: the model is a local file, or is not on a hub.
    """
    named, _, quantization = model.partition(":")
    named = repository(named, whole=False)
    stem = re.sub(r"[-_.]gguf$", "", named.partition("/")[2], flags=re.IGNORECASE)
    return named, file or f"{stem}-{quantization or 'Q4_K_M'}.gguf"


def repository(model: str, *, whole: bool = True) -> str:
    """A repository of the hub.

    Args:
        whole: whether all files of the repository are served, unlike GGUF files.

    Raises:
        Unfit: the model is a file, a GGUF file, or not a repository.
    """
    files = re.search(r"gguf", model, re.IGNORECASE) or re.fullmatch(r"[^:]+/[^:]+:\S+", model)
    if whole and files:
        raise Unfit("model", repr(model), "GGUF is for llama.cpp, not for this engine")
    try:
        return _REPOSITORY.validate_python(model)
    except ValidationError:
        reason = "the model is not a repository of the hub, organisation/name"
        raise Unfit("model", repr(model[:100]), reason) from None


def family(model: str) -> str:
    """Family of a model, which rules refer to: its name without the format."""
    stem = model.rpartition("/")[2].lower()
    before = None
    while stem != before:
        before, stem = stem, _FORMATS.sub("", stem)
    return slug(stem or model)
