"""Loads: categories x requests at a time, long prompts one at a time, and the prompts of each.

The cards' own prompts are not published. ``prompts/`` has a few of this project's own prompts for
each of the cards' categories, one file a category; a change of the prompts makes new loads with old
names, so that earlier figures no longer compare: ``aiperf.LABEL`` changes with it.
"""

import math
import random
import re
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

from sparkwright.catalog.measurements import Category
from sparkwright.findings.user_error import Messages, UserError, suggest
from sparkwright.text.shipped_yaml import read

#: The categories with prompts, in the order of the cards.
CATEGORIES: tuple[Category, ...] = (
    "coding", "math", "reasoning", "prose", "natural-language", "extraction-json",
)  # fmt: skip
#: The cards' long contexts are of coding, where they say of what.
CONTEXT_CATEGORY: Category = "coding"
_CONTEXT_REQUESTS = 3
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Sweep:
    """Categories, requests at a time (as in the cards' tables), and tokens of long prompts."""

    categories: tuple[Category, ...] = CATEGORIES
    concurrency: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    context: tuple[int, ...] = (2000, 16000, 33000)


FULL, QUICK = Sweep(), Sweep(("coding", "prose"), (1, 8), (2000,))


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
        """The name of its phase in the generator's configuration and reports."""
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
        """Prompts to send: each of the category's, or as many long prompts as requests."""
        if self.context is None:
            return list(texts(self.category)["prompts"])
        sent = sum(load.warm_up + load.requests for load in self.loads)
        return [
            long_prompt(self.category, self.context, f"{seed}-{number}", characters_per_token)
            for number in range(sent)
        ]


def batches(sweep: Sweep, *, quick: bool) -> tuple[Batch, ...]:
    """The batches of a sweep. Every category's cell sends each of its prompts equally often."""
    short = [
        Batch(name, None, tuple(_load(number, len(texts(name)["prompts"]), quick)
                                for number in sweep.concurrency))
        for name in sweep.categories
    ]  # fmt: skip
    every = sweep.categories
    category = CONTEXT_CATEGORY if CONTEXT_CATEGORY in every else every[0]
    long = Load(1, 1 if quick else _CONTEXT_REQUESTS, 1)
    return (*short, *(Batch(category, tokens, (long,)) for tokens in sweep.context))


def _load(concurrency: int, prompts: int, quick: bool) -> Load:
    """Twice as many requests as run at a time, so that the ends count little; quick: as many as
    run at a time.
    """
    rounds = math.ceil(concurrency * (1 if quick else 2) / prompts)
    return Load(concurrency, prompts * max(1, rounds), concurrency)


@cache
def texts(category: str) -> dict[str, Any]:
    """A file of texts: a category's ``prompts``, and the question after a long text, ``context``;
    or ``long-text`` with the ``notes`` that long prompts are made of."""
    data: dict[str, Any] = read(Path(__file__).parent / f"prompts/{category}.yaml")
    return data


def sample() -> str:
    """All notes together: their tokens give the number of characters per token."""
    notes = texts("long-text")["notes"]
    return "\n".join(note.format(number) for number, note in enumerate(notes, 1))


def long_prompt(category: str, tokens: int, seed: str, characters_per_token: float) -> str:
    """A prompt of about this many tokens: notes in the seed's order, then the question.

    Its first line belongs to the seed alone, so that no prefix cache has its beginning.
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


def read_categories(text: str) -> tuple[Category, ...]:
    """``coding,prose``.

    Raises:
        UserError: for a category without prompts.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [name for name in names or [text] if name not in CATEGORIES]:
        raise UserError(
            _MESSAGES.mistake("no-prompts", f"--categories {name}", near=suggest(name, CATEGORIES))
            for name in dict.fromkeys(unknown)
        )
    return tuple(category for category in CATEGORIES if category in names)


def read_numbers(option: str, text: str, *, most: int = 1024) -> tuple[int, ...]:
    """Parse ``1,8,64`` or ``2k,16k`` (thousands), sorted; ``none`` is an empty list.

    Raises:
        UserError: the text is no such list.
    """
    numbers = set()
    for part in text.split(",") if text.strip() != "none" else ():
        match = re.fullmatch(r"\s*(\d{1,9})([kK]?)\s*", part)
        number = int(match[1]) * (1000 if match[2] else 1) if match else 0
        if not 1 <= number <= most:
            raise _MESSAGES.refusal("no-number", f"{option} {text}", part=part, most=most)
        numbers.add(number)
    return tuple(sorted(numbers))
