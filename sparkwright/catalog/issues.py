"""Known issues as data: what breaks, under which conditions, and what to write instead.

A fact of the cards belongs to the tag that it was measured on. So it stands with its image or
model as an entry with conditions, and a new tag's breakage is a few lines of YAML.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from sparkwright.catalog.data import Data, Name, Scalar


class Condition(Data):
    """What a value must be for an issue to apply; all that is given must hold.

    Attributes:
        any_of: one of these; text is compared without regard to case.
        none_of: none of these; an absent value is none of them.
        above, below: a number beyond this.
        present: whether there is a value at all.
    """

    any_of: tuple[Scalar, ...] = ()
    none_of: tuple[Scalar, ...] = ()
    above: float | None = None
    below: float | None = None
    present: bool | None = None

    def holds(self, value: Scalar | None) -> bool:
        """Whether a value (None: absent) meets the condition."""
        if self.present is not None and (value is not None) is not self.present:
            return False
        if self.any_of and not any(_same(value, wanted) for wanted in self.any_of):
            return False
        if any(_same(value, wanted) for wanted in self.none_of):
            return False
        if self.above is None and self.below is None:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.above is None or value > self.above) and (
            self.below is None or value < self.below
        )


def _same(value: Scalar | None, wanted: Scalar) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return value.lower() == wanted.lower()
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return value == wanted


class Issue(Data):
    """A mistake that a card describes.

    Attributes:
        id: the rule's name, in messages and to silence it.
        severity: an error stops the run, a warning does not.
        tags: of the image; empty for every tag. Only on an image's issues.
        when: fact -> condition. Facts are ``argument.<name>`` (underscores),
            ``speculative.<key>``, ``environment.<NAME>``, ``body.family``, ``body.format``,
            ``body.name``, ``drafter.name``, ``compute_cap``, ``architecture``, ``tag``.
        what: what is wrong, of a service that meets all conditions.
        instead: what to write.
    """

    id: Name
    severity: Literal["error", "warning"]
    tags: tuple[str, ...] = ()
    when: dict[str, Condition] = Field(min_length=1)
    what: str
    why: str
    instead: str
    source: str
    date: dt.date

    @model_validator(mode="after")
    def _known_facts(self) -> Issue:
        for fact in self.when:
            kind, _, name = fact.partition(".")
            if kind in ("argument", "speculative", "environment") and name:
                continue
            if fact not in FACTS:
                raise ValueError(f"unknown fact {fact!r}; known: {', '.join(FACTS)}")
        return self

    def applies(self, tag: str, facts: Mapping[str, Scalar | None]) -> bool:
        """Whether a service with these facts makes the mistake."""
        if self.tags and tag not in self.tags:
            return False
        return all(condition.holds(facts.get(fact)) for fact, condition in self.when.items())


#: Facts without a name of their own behind a dot, besides argument.*, speculative.*, environment.*
FACTS = (
    "body.family",
    "body.format",
    "body.name",
    "drafter.name",
    "compute_cap",
    "architecture",
    "tag",
)
