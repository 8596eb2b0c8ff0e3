"""Requests and answers as JSON data, and back: records are dataclasses.

A field may be a record, ``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``, ``X | None``, a plain
value, or ``object`` for data that is passed on unchanged.
"""

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, replace
from functools import cache
from types import UnionType

from sparkwright.host.lib.annotations import TYPE_CHECKING, Any, T

__all__ = ["Malformed", "call", "dataclass", "decode", "encode", "field", "replace"]

#: Bound of all numbers: no size, time or set of bits exceeds 64 bits.
_BOUND = 1 << 64


if not TYPE_CHECKING:
    _with_fields = dataclass(init=False, repr=False, eq=False)

    def dataclass(**_options):
        """Make a frozen record of a class, with methods that all records share.

        The standard library's decorator compiles six methods for each class, which takes 0.3 ms.
        Options are for type checkers.
        """

        def made(cls):
            cls = _with_fields(cls)
            cls.__init__, cls.__eq__, cls.__hash__, cls.__repr__ = _init, _eq, _hash, _repr
            cls.__setattr__ = cls.__delattr__ = _refuse
            return cls

        return made


def _init(self: Any, *values: Any, **named: Any) -> None:
    fields = self.__dataclass_fields__
    given = {**dict(zip(fields, values, strict=False)), **named}
    for name, item in fields.items():
        make = item.default_factory
        value = item.default if make is MISSING or name in given else make()
        self.__dict__[name] = given.pop(name, value)
        if self.__dict__[name] is MISSING:
            raise TypeError(f"{type(self).__name__}: {name} is missing")
    if given or len(values) > len(fields):
        raise TypeError(f"{type(self).__name__}: unexpected: {', '.join(given) or len(values)}")


def _refuse(self: Any, name: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} is read-only")


def _values(self: Any) -> tuple[Any, ...]:
    """Return the values of the fields, without cached properties."""
    return tuple(self.__dict__[name] for name in self.__dataclass_fields__)


def _eq(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    pairs = zip(self.__dataclass_fields__, _values(self), strict=True)
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


class Malformed(ValueError):
    """The data does not fit the record; the text names the field."""


def decode(cls: type[T], data: object) -> T:
    """Make a record from JSON data.

    Unknown keys are ignored; missing keys take their defaults.

    Raises:
        Malformed: a key without a default is missing, a value has another type, or a number is not
            finite or beyond 64 bits.
    """
    return _decode(cls, data, getattr(cls, "__name__", str(cls)))  # type: ignore[no-any-return]


def encode(value: object) -> Any:
    """Return JSON data of records, including records within lists, tuples and dicts."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: encode(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def call(program: Callable[[Any], object], request: object) -> Any:
    """Return a program's answer as JSON data. The program's annotation names the record of the
    request.
    """
    name = next(iter(program.__annotations__))
    kind = _resolved(program.__annotations__[name], program.__module__)
    return encode(program(_decode(kind, request, name)))


@cache
def _fields(cls: Any) -> dict[str, tuple[Any, Any]]:
    """Return the type and field of each name. Annotations are texts, evaluated in their module."""
    result = {}
    for base in cls.__mro__:
        for name, text in getattr(base, "__annotations__", {}).items():
            if name in cls.__dataclass_fields__ and name not in result:
                kind = _resolved(text, base.__module__)
                result[name] = (kind, cls.__dataclass_fields__[name])
    return result


def _resolved(annotation: object, module: str) -> Any:
    """Evaluate an annotation. typing.get_type_hints alone costs as much as all other steps."""
    namespace = vars(sys.modules[module])
    return eval(annotation, namespace) if isinstance(annotation, str) else annotation


def _decode(kind: Any, data: Any, where: str) -> Any:
    if hasattr(kind, "__dataclass_fields__"):
        return _record(kind, data, where)
    if isinstance(kind, UnionType):
        if data is None and type(None) in kind.__args__:
            return None
        first = next(item for item in kind.__args__ if item is not type(None))
        return _decode(first, data, where)
    origin = getattr(kind, "__origin__", None)
    if origin is tuple:
        items = _typed(list, list(data) if isinstance(data, tuple) else data, where)
        if kind.__args__[-1] is Ellipsis:
            return tuple(_decode(kind.__args__[0], item, where) for item in items)
        if len(items) != len(kind.__args__):
            raise Malformed(f"{where}: {len(kind.__args__)} values are needed, not {len(items)}")
        return tuple(_decode(*item, where) for item in zip(kind.__args__, items, strict=True))
    if origin is dict:
        name, inner = kind.__args__
        values = _typed(dict, data, where).items()
        # JSON's keys are always texts.
        named = ((_number(key, where) if name is int else key, item) for key, item in values)
        return {key: _decode(inner, item, f"{where}.{_shown(key)}") for key, item in named}
    if kind is float and type(data) is int:
        return float(_typed(int, data, where))
    if hasattr(kind, "__members__"):  # an enumeration, by its value
        try:
            return kind(data)
        except ValueError:
            names = ", ".join(kind)
            raise Malformed(f"{where}: {_shown(data, quoted=True)} is not one of {names}") from None
    return _typed(kind, data, where) if kind in (str, int, float, bool) else data


def _record(cls: Any, data: Any, where: str) -> Any:
    given = _typed(dict, data, where)
    values = {}
    for name, (kind, item) in _fields(cls).items():
        if name in given:
            values[name] = _decode(kind, given[name], f"{where}.{name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise Malformed(f"{where}: {name} is missing")
    return cls(**values)


def _typed(kind: type[T], data: Any, where: str) -> T:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise Malformed(f"{where}: {_shown(data, quoted=True)} is not of type {kind.__name__}")
    if isinstance(data, (int, float)) and not -_BOUND < data < _BOUND:  # and no NaN
        raise Malformed(f"{where}: {_shown(data)} is out of range")
    return data


def _number(key: Any, where: str) -> int:
    """Convert a dict's key to a number of bounded length."""
    text = str(key)[:21]
    if text.isascii() and text.isdigit() and len(text) <= 20:
        return int(text)
    raise Malformed(f"{where}: {_shown(key, quoted=True)} is not of type int")


def _shown(data: Any, *, quoted: bool = False) -> str:
    """Return the beginning of a value for a message, or only the kind of nested data."""
    if isinstance(data, str):
        return repr(data[:60]) if quoted or not data.isprintable() else data[:60]
    if data and isinstance(data, (list, tuple, dict)):
        return "an object" if isinstance(data, dict) else "a list"
    return repr(data)[:60]
