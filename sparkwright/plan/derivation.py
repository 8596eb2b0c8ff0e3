"""Where the values of a service without a recipe of its own come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DerivedFact:
    """Something that was read from a model's own files, or decided by it."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Derivation:
    """What a service was derived from.

    Attributes:
        arguments: argument -> who says its value.
        facts: everything else, for people.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[DerivedFact, ...] = ()
