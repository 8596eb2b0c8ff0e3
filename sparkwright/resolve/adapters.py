"""Facts about a LoRA adapter, from its adapter_config.json and the header of its weights.

Both are data of strangers: values of another form than theirs count as not said.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

from pydantic import Field

from sparkwright.catalog.data import Data
from sparkwright.documents import json_text
from sparkwright.resolve.kv_cache import MOST, whole
from sparkwright.resolve.model_facts import Word

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
#: Bytes and values of a header: experts of a large model have some 40,000 matrices.
_MOST_BYTES, _MOST_VALUES = 8 << 20, 1_000_000
_RANKED = re.compile(r"(?<!experts)\.lora_A\.(\w+\.)?weight$")
#: Matrices whose input (lora_A), or whose output, is the body's hidden state.
_STATE = re.compile(r"\.(([qkv]|gate|up)_proj\.lora_A|(o|down)_proj\.lora_B)\.(\w+\.)?weight$")


class Lora(Data):
    """Facts about an adapter.

    Attributes:
        kind: its method, as PEFT names it; ``LORA`` alone is served.
        base: name of the model that it was made for; None where it names none.
        rank: the largest of its matrices; 0 where it has none in safetensors.
        hidden_size: of the body that it fits; None where its matrices do not show it.
    """

    kind: Word | None = None
    base: str | None = None
    rank: int = Field(default=0, strict=True, ge=0, le=MOST)
    hidden_size: int | None = Field(default=None, strict=True, ge=0, le=MOST)


def lora_of(
    files: Collection[str],
    small: Callable[[str], dict[str, Any]],
    piece: Callable[[str, int, int], bytes],
) -> Lora | None:
    """The facts; None for a repository that is no adapter.

    Args:
        files: paths of the repository.
        small: returns the object of a JSON file.
        piece: returns bytes of a file: from where, and how many.

    Raises:
        ValueError, TypeError, LookupError, Unusable: for files of another form.
    """
    if _CONFIG not in files:
        return None
    config, header = small(_CONFIG), {}
    if _WEIGHTS in files:
        length = min(int.from_bytes(piece(_WEIGHTS, 0, 8), "little"), _MOST_BYTES)
        header = json_text.load_object(piece(_WEIGHTS, 8, length), _MOST_VALUES)
    shapes = {name: entry["shape"] for name, entry in header.items() if "shape" in entry}
    ranks = [shape[0] for name, shape in shapes.items() if _RANKED.search(name)]
    widths = [each["lora_A" in name] for name, each in shapes.items() if _STATE.search(name)]
    ranks += [whole(config, "r") or 0, *(config.get("rank_pattern") or {}).values()] * bool(ranks)
    return Lora(
        kind=config.get("peft_type"),
        base=config.get("base_model_name_or_path"),
        rank=max(ranks, default=0),
        hidden_size=next(iter(widths), None),
    )
