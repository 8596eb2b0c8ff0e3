"""The cards that the catalog quotes: by their names, and where they are published."""

from __future__ import annotations

import re

_HUB = "https://huggingface.co/AEON-7"
_GITHUB = "https://github.com/AEON-7"
#: Number in the catalog's sources -> name, what it is, date, address.
CARDS = {
    "000": (
        "aeon-vllm-ultimate card",
        "the image `aeon-vllm-ultimate` and the models that it serves",
        "2026-07-02",
        f"{_GITHUB}/vllm-ultimate-dgx-spark",
    ),
    "001": (
        "Qwen3.6-35B-A3B-heretic card",
        "the model `Qwen3.6-35B-A3B-heretic-NVFP4`",
        "2026-06-19",
        f"{_HUB}/Qwen3.6-35B-A3B-heretic-NVFP4",
    ),
    "002": (
        "vllm-dflash card",
        "the image `vllm-dflash`, for Qwen3.5-27B",
        "2026-04",
        f"{_GITHUB}/vllm-dflash",
    ),
    "003": (
        "Gemma-4-26B-A4B card",
        "the model `Gemma-4-26B-A4B-it-Uncensored-NVFP4`",
        "2026-06-11",
        f"{_HUB}/Gemma-4-26B-A4B-it-Uncensored-NVFP4",
    ),
    "004": (
        "vllm-spark-omni-q36 card",
        "the image `vllm-spark-omni-q36`, for Qwen3.6-35B-A3B-heretic",
        "2026-05-01",
        f"{_GITHUB}/Qwen3.6-NVFP4-DFlash",
    ),
}
_OTHERS = (("reference hosts", "field reports"), ("reference vllm", "vLLM as observed"))


def named(source: str) -> str:
    """A source with the names of cards instead of their numbers."""
    found = re.sub(r"\bseeds? (\d{3}(?:(?:, | and | to )\d{3})*)", _names, source)
    for number, name in _OTHERS:
        found = found.replace(number, name)
    return found


def _names(match: re.Match[str]) -> str:
    first, to, last = match[1].partition(" to ")
    numbers = match[1]
    if to:
        numbers = ", ".join(number for number in CARDS if first <= number <= last)
    return re.sub(r"\d{3}", lambda number: CARDS[number[0]][0], numbers)
