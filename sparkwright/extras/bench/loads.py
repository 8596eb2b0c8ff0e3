"""Which loads are measured: categories x requests at a time, and long prompts one at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.catalog.measurements import Category
from sparkwright.extras.bench.texts import CATEGORIES, texts
from sparkwright.findings.user_error import UserError, mistake, suggest

#: As many requests at a time as the cards' tables have.
CONCURRENCY = (1, 2, 4, 8, 16, 32, 64)
CONTEXT = (2000, 16000, 33000)
QUICK_CONCURRENCY = (1, 8)
QUICK_CONTEXT = (2000,)
QUICK_CATEGORIES: tuple[Category, ...] = ("coding", "prose")
#: The cards' long contexts are of coding, where they say of what.
CONTEXT_CATEGORY: Category = "coding"
_CONTEXT_REQUESTS = 3
_MOST = 1024


@dataclass(frozen=True)
class Load:
    """One cell to be measured: requests in a closed loop, after a warm-up of the same kind.

    Attributes:
        concurrency: requests at a time.
        requests: how many are measured.
        warm_up: how many are sent before, and not measured: the first of a boot and the first of
            each concurrency take longer (card of vllm-ultimate-dgx-spark, 4 concurrent streams:
            1222 ms cold, 276 steady).
    """

    concurrency: int
    requests: int
    warm_up: int


@dataclass(frozen=True)
class Batch:
    """Loads of the same prompts, measured by one start of the generator.

    Attributes:
        context: the prompt's tokens for a long one; None for the category's own prompts.
    """

    category: Category
    context: int | None
    loads: tuple[Load, ...]

    @property
    def requests(self) -> int:
        """How many are sent, the warm-up's with them."""
        return sum(load.warm_up + load.requests for load in self.loads)


def batches(
    categories: Sequence[Category],
    concurrency: Sequence[int],
    contexts: Sequence[int],
    *,
    quick: bool,
) -> tuple[Batch, ...]:
    """The sweep. Every category's cell sends each of its prompts equally often."""
    found = [
        Batch(
            category,
            None,
            tuple(_load(n, len(texts(category).prompts), quick) for n in concurrency),
        )
        for category in categories
    ]
    category = CONTEXT_CATEGORY if CONTEXT_CATEGORY in categories else categories[0]
    long = Load(1, 1 if quick else _CONTEXT_REQUESTS, 1)
    found += [Batch(category, tokens, (long,)) for tokens in contexts]
    return tuple(found)


def _load(concurrency: int, prompts: int, quick: bool) -> Load:
    """Twice as many requests as run at a time, so that the ends weigh little; quick: once."""
    rounds = math.ceil(concurrency * (1 if quick else 2) / prompts)
    return Load(concurrency, prompts * max(1, rounds), concurrency)


def read_categories(text: str) -> tuple[Category, ...]:
    """``coding,prose``.

    Raises:
        UserError: for a category without prompts.
    """
    names = list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    wrong = [name for name in names if name not in CATEGORIES]
    if wrong or not names:
        raise UserError(
            mistake(
                f"--categories {name}", "there are no prompts for it", suggest(name, CATEGORIES)
            )
            for name in wrong or [text]
        )
    return tuple(category for category in CATEGORIES if category in names)


def read_numbers(option: str, text: str, *, most: int = _MOST) -> tuple[int, ...]:
    """``1,8,64`` or ``2k,16k`` (thousands), sorted; ``none`` is none.

    Raises:
        UserError: for what is no such list.
    """
    found = set()
    if text.strip() == "none":
        return ()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})([kK]?)\s*", part)
        number = int(match[1]) * (1000 if match[2] else 1) if match else 0
        if not 1 <= number <= most:
            raise UserError(
                [mistake(f"{option} {text}", f"{part!r} is no number from 1 to {most}",
                         "write such as 1,8,64 or 2k,16k")]
            )  # fmt: skip
        found.add(number)
    return tuple(sorted(found))
