"""Files in the GGUF format, which llama.cpp loads: metadata, a table of tensors, their data.

Little-endian, version 3: a magic number, the counts of tensors and keys, the keys with a type each,
then per tensor its name, its shape (the innermost dimension first), its type and the offset of its
data. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 32
#: Numbers in a block of Q8_0, which share a scale.
BLOCK = 32
#: Number of each tensor type in the format.
TYPES = {"F32": 0, "F16": 1, "Q8_0": 8}
#: Number of each file type, for ``general.file_type`` in a file's metadata.
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7, "Q4_K_M": 15, "Q6_K": 18}

Value = bool | int | float | str | Sequence[int] | Sequence[str]


@dataclass(frozen=True)
class Typed:
    """An integer of metadata whose type is not uint32: ``H`` or ``i``, as in ``struct``."""

    value: int
    code: str


Metadata = Mapping[str, Value | Typed]


@dataclass(frozen=True)
class Weights:
    """A tensor: its shape as PyTorch has it, the outermost dimension first, and its numbers."""

    name: str
    shape: tuple[int, ...]
    numbers: Sequence[float]

    def data(self, kind: str) -> bytes:
        """The numbers as F32, F16 or Q8_0."""
        if kind == "Q8_0":
            return b"".join(
                _q8(self.numbers[start : start + BLOCK])
                for start in range(0, len(self.numbers), BLOCK)
            )
        return struct.pack(f"<{len(self.numbers)}{'e' if kind == 'F16' else 'f'}", *self.numbers)


def gguf(metadata: Metadata, tensors: Sequence[Weights], kind: str) -> Iterator[bytes]:
    """Yield a file whose matrices are of a type, ``F16`` or ``Q8_0``; vectors are always F32."""
    parts = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))]
    parts += [_text(key) + _value(value) for key, value in metadata.items()]
    data, offset = [], 0
    for tensor in tensors:
        stored = kind if len(tensor.shape) > 1 else "F32"
        content = tensor.data(stored)
        data.append(content + bytes(-len(content) % ALIGNMENT))
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *reversed(tensor.shape))
        parts.append(_text(tensor.name) + shape + struct.pack("<IQ", TYPES[stored], offset))
        offset += len(data[-1])
    head = b"".join(parts)
    yield head + bytes(-len(head) % ALIGNMENT)
    yield from data


def split(
    metadata: Metadata, tensors: Sequence[Weights], kind: str, count: int
) -> list[Iterator[bytes]]:
    """Yield the file as `count` files, as llama-gguf-split makes them: the first file has all
    metadata.
    """
    each = math.ceil(len(tensors) / count)
    files = []
    for number in range(count):
        keys = {
            "split.no": Typed(number, "H"),
            "split.count": Typed(count, "H"),
            "split.tensors.count": Typed(len(tensors), "i"),
        }
        part = tensors[number * each : (number + 1) * each]
        files.append(gguf({**(metadata if number == 0 else {}), **keys}, part, kind))
    return files


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Value | Typed) -> bytes:
    """A type's number in the format, then the value."""
    match value:
        case Typed():
            return struct.pack(f"<I{value.code}", {"H": 2, "i": 5}[value.code], value.value)
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case _ if value and isinstance(value[0], int):
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
        case _:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(str(v)) for v in value)


def _q8(numbers: Sequence[float]) -> bytes:
    """A block of Q8_0: the scale as F16, then a signed byte per number."""
    scale = max(abs(number) for number in numbers) / 127
    quants = [round(number / scale) if scale else 0 for number in numbers]
    return struct.pack(f"<e{len(quants)}b", scale, *quants)
