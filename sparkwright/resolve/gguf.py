"""Headers of GGUF files, versions 2 and 3: values and tensors, read from a file's beginning.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

These files are untrusted: no length in a header decides an allocation, and no text of a header gets
into a message.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.documents.bounds import Unusable
from sparkwright.text.shipped_yaml import beside

Value = int | float | bool | str | tuple[int | float | bool, ...]
#: Kind of value -> its letter for ``struct``.
_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
#: Largest size of a header in bytes: a tokenizer with 262,144 tokens and its merges takes some 16
#: MiB.
MOST_BYTES = 64 << 20
#: Limits: values, tensors, elements of a kept array, bytes of a name, and dimensions of a tensor.
_MOST, _KEPT, _NAME, _DIMENSIONS = 1 << 16, 1 << 10, 1 << 10, 8
_FIRST, _NEXT = 512 << 10, 8 << 20
_LARGEST = 1 << 40
TYPES: dict[int, tuple[int, int]] = beside(__file__, "gguf.yaml")["types"]


@dataclass(frozen=True)
class Header:
    """Header of a GGUF file.

    Attributes:
        values: values by key; arrays only if they are short and contain numbers.
        tensors: name -> count of the tensor's numbers, and their bytes.
    """

    values: Mapping[str, Value]
    tensors: Mapping[str, tuple[int, int]]


def read_header(fetch: Callable[[int, int], bytes], size: int) -> Header:
    """Read the header of a file of this size.

    Args:
        fetch: function that returns this many bytes of the file from an offset on.

    Raises:
        Unusable: the file is not a GGUF file, is cut off, or is beyond the bounds.
    """
    text = _Text(fetch, size)
    if text.take(4) != b"GGUF":
        raise fault("it is not a GGUF file")
    version = text.number("I")
    if version & 0xFFFF == 0:  # the file has the other byte order
        text.order, version = ">", version >> 24
    if version not in (2, 3):
        raise fault(f"GGUF version {version} is not supported")
    tensors, entries = text.count(_MOST), text.count(_MOST)
    values: dict[str, Value] = {}
    keys = set()
    for _ in range(entries):
        if (key := text.name()) in keys:
            raise fault("a key appears twice")
        keys.add(key)
        if (value := text.value(text.number("I"))) is not None:
            values[key] = value
    return Header(values, _tensors(text, tensors, values.get("general.alignment", 32)))


def _tensors(text: "_Text", count: int, alignment: object) -> dict[str, tuple[int, int]]:
    """Read the tensors, by name."""
    places: dict[int, tuple[str, int, int]] = {}
    for _ in range(count):
        name = text.name()
        numbers = math.prod(text.numbers(text.count(_DIMENSIONS, "I"), "Q"))
        kind = text.number("I")
        places[text.number("Q")] = name, numbers, kind
    if not isinstance(alignment, int) or not 0 < alignment <= _MOST or alignment & alignment - 1:
        raise fault("its alignment is not a power of two")
    result = {}
    ends = [*sorted(places)[1:], text.size - -(-text.at // alignment) * alignment]
    for offset, end in zip(sorted(places), ends, strict=False):
        name, numbers, kind = places[offset]
        length, per = TYPES.get(kind, (end - offset, numbers or 1))
        result[name] = numbers, numbers * length // per
        room = min(end - offset, _LARGEST)
        if offset % alignment or not 0 <= result[name][1] <= room or numbers > _LARGEST:
            raise fault("a tensor lies outside of the file")
    if len(result) != count:
        raise fault("two tensors have the same name or the same offset")
    return result


class _Text:
    """First part of a file, fetched as the reader needs it.

    Attributes:
        at: offset of the next byte.
        order: byte order, as ``struct`` writes it.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch, self.size = fetch, size
        self._data = bytearray()
        self.at, self.order = 0, "<"

    def need(self, end: int) -> None:
        """Fetch every byte before ``end``."""
        if end > self.size:
            raise fault("it is cut off, or its header declares more data")
        if end > MOST_BYTES:
            raise fault(f"its header has more than {MOST_BYTES >> 20} MiB")
        while end > (there := len(self._data)):
            length = min(max(there, _FIRST), _NEXT, self.size - there)
            piece = self._fetch(there, length)
            if len(piece) != length:
                raise fault("it is cut off")
            self._data += piece

    def take(self, length: int) -> bytes:
        """Read the next bytes."""
        self.need(self.at + length)
        self.at += length
        return bytes(self._data[self.at - length : self.at])

    def number(self, letter: str) -> Any:
        """Read the next number."""
        return self.numbers(1, letter)[0]

    def numbers(self, count: int, letter: str) -> tuple[Any, ...]:
        """Read the next numbers; empty if there are too many to keep."""
        data = self.take(count * struct.calcsize(f"={letter}"))
        return struct.unpack(f"{self.order}{count}{letter}", data) if count <= _KEPT else ()

    def count(self, most: int, letter: str = "Q") -> int:
        """Read the next number, a count of following values."""
        result: int = self.number(letter)
        if result > most:
            raise fault(f"it declares {result} entries, but at most {most} are allowed")
        return result

    def name(self) -> str:
        """Read the next string, a name."""
        return self.take(self.count(_NAME)).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """Read the next value; None for a value that is not stored."""
        if letter := _NUMBERS.get(kind):
            return self.number(letter)
        if kind == _STRING:
            return self.take(self.number("Q")).decode("utf-8", "replace")
        if kind != _ARRAY:
            raise fault(f"a value has the unknown kind {kind}")
        kind, count = self.number("I"), self.number("Q")
        if letter := _NUMBERS.get(kind):
            return self.numbers(count, letter) or None
        if kind != _STRING:
            raise fault("it has arrays within arrays")
        self._skip_texts(count)
        return None

    def _skip_texts(self, count: int) -> None:
        """Skip texts; a tokenizer has a million texts, which take 0.2 s."""
        unpack, at = struct.Struct(self.order + "Q").unpack_from, self.at
        for _ in range(count):
            if at + 8 > len(self._data):
                self.need(at + 8)
            at += 8 + unpack(self._data, at)[0]
        self.need(at)
        self.at = at


def fault(problem: str) -> Unusable:
    return Unusable(problem, "choose another file")
