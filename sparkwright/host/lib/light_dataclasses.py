"""Light ``dataclasses`` module for programs on hosts: fields of records, with a faster import.

The standard library's module takes 10 ms to import, since it loads ``inspect``: every host would
spend this time in every run. ``records.py`` gives records their methods, with this module and with
the standard library's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Callable
    from typing import Any

MISSING: Any = object()


class Field:
    """A field's default, under the names of the standard library."""

    def __init__(self, *, default: Any = MISSING, default_factory: Any = MISSING) -> None:
        self.default, self.default_factory = default, default_factory


field = Field


def dataclass(*, init: bool, repr: bool, eq: bool) -> Callable[[type[Any]], type[Any]]:
    """Collect the fields of an annotated class without making methods: the three options must be
    off.
    """

    def collected(cls: type[Any]) -> type[Any]:
        fields: dict[str, Field] = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(getattr(base, "__dataclass_fields__", {}))
        for name in cls.__annotations__:
            value = cls.__dict__.get(name, MISSING)
            fields[name] = value if isinstance(value, Field) else Field(default=value)
            if isinstance(value, Field):
                delattr(cls, name)
        cls.__dataclass_fields__ = fields
        return cls

    return collected


def replace(record: Any, **changes: Any) -> Any:
    """Return a copy of a record with some values changed."""
    return type(record)(**{**vars(record), **changes})
