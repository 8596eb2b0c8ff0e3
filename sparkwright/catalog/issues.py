"""Known issues as data: the failure, its conditions, and the setting that avoids it.

A fact of a card belongs to the tag on which it was measured. An issue is therefore an entry of its
image or model, with conditions, and a new tag's breakage is a few lines of YAML.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from sparkwright.catalog.data import OWN, Data, Name, Scalar
from sparkwright.text.shipped_yaml import beside


class Condition(Data):
    """Condition on a value for an issue to apply; all given keys must hold.

    Attributes:
        any_of: one of these values; text is compared without regard to case.
        none_of: none of these values; an absent value meets the condition.
        above, below: a limit that the number must exceed, or stay below.
        present: whether the value exists, as written or as vLLM's default.
        unlike: a case-sensitive pattern that the whole value must not match; an absent value meets
            the condition.
    """

    any_of: tuple[Scalar, ...] = ()
    none_of: tuple[Scalar, ...] = ()
    above: float | None = None
    below: float | None = None
    present: bool | None = None
    unlike: str | None = None

    def holds(self, value: Scalar | None) -> bool:
        """Return whether a value (None: absent) meets the condition."""
        if self.present is not None and (value is not None) is not self.present:
            return False
        if self.unlike and (value is None or re.fullmatch(self.unlike, str(value))):
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


#: Spellings of a switch variable that an engine reads, besides 1 and 0.
_FLAGS = {"true": "1", "false": "0"}


def folded(text: str) -> str:
    """Normalize a text like most programs: ignore case and blanks, and read ``true`` as 1."""
    text = text.strip().lower()
    return _FLAGS.get(text, text)


def _same(value: Scalar | None, wanted: Scalar) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return folded(value) == folded(wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return value == wanted


Conditions = Annotated[dict[str, Condition], Field(min_length=1)]


class Issue(Data):
    """A mistake that a card describes.

    Attributes:
        id: the rule's name in messages and in ``silenced``.
        severity: an error stops the run; a warning does not.
        tags: tags of the image; empty for every tag. Only an image's issues have tags.
        when: fact -> condition, or a list of these mappings; one mapping must hold. Facts are
            ``argument.<name>`` (underscores; vLLM's default if it is not written; its other
            spellings count, as a variable or inside an argument of several values),
            ``speculative.<key>``, ``environment.<NAME>`` (``true`` is 1 and ``false`` is 0),
            ``body.family``, ``body.format``, ``body.name``, ``drafter.name``, ``compute_cap``,
            ``vram_gib`` (dedicated memory), ``architecture``, ``image``, ``tag``.
        problem: fault of a service that meets all conditions.
        instead: the setting to write.
    """

    id: Name
    severity: Literal["error", "warning"]
    tags: tuple[str, ...] = ()
    when: Annotated[
        tuple[Conditions, ...],
        BeforeValidator(
            lambda text: (text,) if isinstance(text, dict) else text,
            json_schema_input_type=Conditions | tuple[Conditions, ...],
        ),
        Field(min_length=1),
    ]
    problem: str
    why: str
    instead: str
    source: str = OWN
    date: dt.date | None = None

    @model_validator(mode="after")
    def _known_facts(self) -> Issue:
        for fact in (fact for item in self.when for fact in item):
            kind, _, name = fact.partition(".")
            if kind in ("argument", "speculative", "environment") and name:
                continue
            if fact not in FACTS:
                raise ValueError(f"unknown fact {fact!r}; known: {', '.join(FACTS)}")
        return self

    def met(self, tag: str, facts: Mapping[str, Scalar | None]) -> tuple[str, ...]:
        """Return the facts that make the issue apply to a service; empty if the issue does not
        apply.
        """
        for item in self.when if not self.tags or tag in self.tags else ():
            if all(condition.holds(facts.get(fact)) for fact, condition in item.items()):
                return tuple(item)
        return ()


#: Facts with a fixed name; argument.*, speculative.* and environment.* have any name.
FACTS: list[str] = beside(__file__, "vocabulary.yaml")["facts"]
