"""Loads: categories x requests at a time, long prompts one at a time, and the prompts of each load.

The cards' own prompts are not published. ``prompts/`` has a few of this project's own prompts for
each of the cards' categories, one file for each category; a change of the prompts makes new loads
with old names, so that earlier figures are no longer comparable: ``aiperf.LABEL`` must change with
the prompts.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

from sparkwright.catalog.measurements import Category
from sparkwright.text.shipped_yaml import read

#: The categories with prompts, in the order of the cards.
CATEGORIES: tuple[Category, ...] = (
    "coding", "math", "reasoning", "prose", "natural-language", "extraction-json",
)  # fmt: skip
#: The long contexts on the cards are code, where a card names the subject.
CONTEXT_CATEGORY: Category = "coding"
_CONTEXT_REQUESTS = 3
#: Categories, requests at a time (as many as the cards' tables have), and tokens of long prompts.
FULL = CATEGORIES, (1, 2, 4, 8, 16, 32, 64), (2000, 16000, 33000)
QUICK = ("coding", "prose"), (1, 8), (2000,)


@dataclass(frozen=True)
class Load:
    """A cell to be measured: requests in a closed loop, after a warm-up of the same kind.

    Attributes:
        concurrency: requests at a time.
        requests: number of measured requests.
        warm_up: number of requests before the measurement: the first request of a boot and of each
            concurrency takes longer (card of vllm-ultimate-dgx-spark, 4 concurrent streams: 1222 ms
            cold, 276 steady).
    """

    concurrency: int
    requests: int
    warm_up: int

    @property
    def phase(self) -> str:
        """Name of the load's phase in the generator's configuration and reports."""
        return f"c{self.concurrency}"


@dataclass(frozen=True)
class Batch:
    """Loads of the same prompts, measured by one start of the generator.

    Attributes:
        context: tokens of a long prompt; None for the category's own prompts.
    """

    category: Category
    context: int | None
    loads: tuple[Load, ...]

    @property
    def title(self) -> str:
        """``coding, 2000 tokens``."""
        length = f"{self.context} tokens" if self.context else "its own prompts"
        return f"{self.category}, {length}"

    def prompts(self, seed: str, characters_per_token: float) -> list[str]:
        """Return the prompts to send: the category's own prompts, or one long prompt for each
        request.
        """
        if self.context is None:
            return list(texts(self.category)["prompts"])
        sent = sum(load.warm_up + load.requests for load in self.loads)
        return [
            long_prompt(self.category, self.context, f"{seed}-{number}", characters_per_token)
            for number in range(sent)
        ]


def batches(
    categories: Sequence[str], concurrency: Sequence[int], context: Sequence[int]
) -> tuple[Batch, ...]:
    """The batches of a sweep. Every category's cell sends each of its prompts equally often, and at
    least twice as many requests as run at a time, so that the start and the end have little weight.

    Args:
        context: tokens of long prompts; 0 for no long prompts.
    """

    def load(number: int, prompts: int) -> Load:
        return Load(number, prompts * math.ceil(number * 2 / prompts), number)

    short = [
        Batch(name, None, tuple(load(number, len(texts(name)["prompts"]))
                                for number in sorted({*concurrency})))
        for name in CATEGORIES if name in categories
    ]  # fmt: skip
    category = CONTEXT_CATEGORY if CONTEXT_CATEGORY in categories else short[0].category
    long = (Load(1, _CONTEXT_REQUESTS, 1),)
    return (*short, *(Batch(category, tokens, long) for tokens in sorted({*context} - {0})))


@cache
def texts(category: str) -> dict[str, Any]:
    """Read a file of texts: a category's ``prompts``, and the question after a long text,
    ``context``; or ``long-text`` with the ``notes`` for long prompts.
    """
    return dict(read(Path(__file__).parent / f"prompts/{category}.yaml"))


def sample() -> str:
    """All notes together: their tokens give the number of characters per token."""
    notes = texts("long-text")["notes"]
    return "\n".join(note.format(number) for number, note in enumerate(notes, 1))


def long_prompt(category: str, tokens: int, seed: str, characters_per_token: float) -> str:
    """A prompt of about this many tokens: notes in the seed's order, then the question.

    The first line depends only on the seed, so that no prefix cache has the prompt's beginning.
    """
    question = texts(category)["context"]
    length = tokens * characters_per_token - len(question)
    order = list(texts("long-text")["notes"])
    random.Random(seed).shuffle(order)
    parts = [f"Workshop notes, copy {seed}."]
    length -= len(parts[0])
    for number, note in enumerate(cycle(order), 1):
        if length <= 0:
            break
        parts.append(note.format(number)[: max(1, int(length))])
        length -= len(parts[-1]) + 1
    return "\n".join([*parts, "", question])
