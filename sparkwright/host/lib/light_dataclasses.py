"""Light ``dataclasses`` module for carried programs: the same for records, at less cost.

The standard library's takes 10 ms to import, since it loads ``inspect``, and 0.7 ms for each class,
since it compiles their methods: every host would pay that in every run. This one knows what
requests and answers use: fields with defaults, ``replace`` and comparison. It freezes nothing:
tests run the same programs with the real one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Callable
    from typing import Any

MISSING: Any = object()


class Field:
    """A field's default, under the names of the standard library."""

    def __init__(self, default: Any = MISSING, default_factory: Any = MISSING) -> None:
        self.default, self.default_factory = default, default_factory


def field(*, default: Any = MISSING, default_factory: Any = MISSING) -> Any:
    """A field with a default that is made anew for each record."""
    return Field(default, default_factory)


def dataclass(*, frozen: bool) -> Callable[[type[Any]], type[Any]]:
    """Make a record of a class with annotations."""

    def made(cls: type[Any]) -> type[Any]:
        fields: dict[str, Field] = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(getattr(base, "__dataclass_fields__", {}))
        for name in cls.__annotations__:
            value = cls.__dict__.get(name, MISSING)
            fields[name] = value if isinstance(value, Field) else Field(value)
            if isinstance(value, Field):
                delattr(cls, name)
        methods = {"__init__": _init, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr}
        for name, value in {**methods, "__dataclass_fields__": fields}.items():
            setattr(cls, name, value)
        return cls

    return made


def _init(self: Any, *values: Any, **named: Any) -> None:
    given = dict(zip(self.__dataclass_fields__, values, strict=False))
    given.update(named)
    for name, item in self.__dataclass_fields__.items():
        if name in given:
            value = given.pop(name)
        elif item.default_factory is not MISSING:
            value = item.default_factory()
        elif item.default is not MISSING:
            value = item.default
        else:
            raise TypeError(f"{type(self).__name__}: {name} is missing")
        self.__dict__[name] = value
    if given:
        raise TypeError(f"{type(self).__name__}: there is no {', '.join(given)}")


def _eq(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self).values()))


def _repr(self: Any) -> str:
    inner = ", ".join(f"{name}={value!r}" for name, value in _values(self).items())
    return f"{type(self).__name__}({inner})"


def _values(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def replace(record: Any, **changes: Any) -> Any:
    """The same record with other values."""
    return type(record)(**{**_values(record), **changes})
