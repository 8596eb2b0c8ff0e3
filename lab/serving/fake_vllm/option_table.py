"""Tables of a vLLM version: its `serve` arguments and the names that its configs accept.

The tables are dumped from the real parsers and are beside the package in `flags/`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .identity import AEON, Identity

FLAGS = Path(__file__).resolve().parent.parent / "flags"

AEON_CHOICES: dict[str, list[str]] = {
    # TurboQuant of the AEON build; the nearest value of stock vLLM is turboquant_k8v4. (Stock
    # vLLM has `nvfp4`, too.)
    "kv_cache_dtype": ["tq_k8v4"],
}
"""Argument values that only the AEON build accepts."""


@dataclass(frozen=True)
class Table:
    """Arguments and names that a version accepts.

    options: one mapping per argument (flags, dest, action, nargs, type, choices, default). The
    other fields are names that vLLM's configs accept."""

    version: str
    options: list[dict[str, Any]]
    tool_parsers: list[str]
    reasoning_parsers: list[str]
    attention_backends: list[str]
    speculative_keys: list[str]
    speculative_methods: list[str]
    quantization_methods: list[str]


def load_table(identity: Identity) -> Table:
    """The table of an identity's version, with the additions of its flavour.

    Raises SystemExit for a version without a table.
    """
    path = FLAGS / f"{identity.version}.json"
    if not path.is_file():
        expected = ", ".join(sorted(file.stem for file in FLAGS.glob("*.json")))
        raise SystemExit(f"fake vllm: no table for vLLM {identity.version}; there are {expected}")
    data = json.loads(path.read_text(encoding="utf-8"))
    if identity.flavour == AEON:
        for option in data["options"]:
            if option["dest"] in AEON_CHOICES:
                option["choices"] += AEON_CHOICES[option["dest"]]
    return Table(
        version=data["vllm"],
        options=data["options"],
        tool_parsers=data["tool_parsers"],
        reasoning_parsers=data["reasoning_parsers"],
        attention_backends=data["attention_backends"],
        speculative_keys=data["speculative_keys"],
        speculative_methods=data["speculative_methods"],
        quantization_methods=data["quantization_methods"],
    )
