"""The prompts: a few of this project's own for each of the cards' categories, and long ones.

The cards' own prompts are not published. These are in ``prompts/``, one file a category; a change
there makes new loads of old names, so that figures from before no longer compare:
``aiperf.LABEL`` changes with it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path

import yaml

from sparkwright.catalog.measurements import Category

#: The categories with prompts, in the order of the cards.
CATEGORIES: tuple[Category, ...] = (
    "coding", "math", "reasoning", "prose", "natural-language", "extraction-json",
)  # fmt: skip
_FOLDER = Path(__file__).with_name("prompts")


@dataclass(frozen=True)
class Texts:
    """One category's prompts.

    Attributes:
        context: what is asked after a long text.
    """

    category: Category
    prompts: tuple[str, ...]
    context: str


@cache
def texts(category: Category) -> Texts:
    """The prompts of a category."""
    data = yaml.safe_load((_FOLDER / f"{category}.yaml").read_text(encoding="utf-8"))
    return Texts(data["category"], tuple(data["prompts"]), data["context"])


@cache
def notes() -> tuple[str, ...]:
    """What long prompts are made of."""
    data = yaml.safe_load((_FOLDER / "long-text.yaml").read_text(encoding="utf-8"))
    return tuple(data["notes"])


def sample() -> str:
    """All notes once: from its tokens follows how many characters a token has here."""
    return "\n".join(note.format(number) for number, note in enumerate(notes(), 1))


def long_prompt(category: Category, tokens: int, seed: str, characters_per_token: float) -> str:
    """A prompt of about so many tokens: notes in the seed's order, then the question.

    Its first line is the seed's alone, so that no prefix cache knows its beginning.
    """
    question = texts(category).context
    wanted = tokens * characters_per_token - len(question)
    order = list(notes())
    random.Random(seed).shuffle(order)
    parts = [f"Workshop notes, copy {seed}."]
    length = len(parts[0])
    for number, note in enumerate(cycle(order), 1):
        if length >= wanted:
            break
        part = note.format(number)[: max(1, int(wanted - length))]
        parts.append(part)
        length += len(part) + 1
    return "\n".join([*parts, "", question])
