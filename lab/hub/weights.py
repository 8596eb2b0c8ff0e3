"""Weight files in the safetensors format: small, random, with true headers.

A tensor keeps its name, its type and its true width; its first dimension (rows) is cut so that
the whole model fits a given size. Random data come from a seed per tensor, so a tensor has the
same bytes on every machine.

A file has 8 bytes with the header's length (little-endian), a JSON header with dtype, shape and
data_offsets per tensor, then the data. Source: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .store import COPY_BYTES

DTYPE_BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}
HEADER_ALIGNMENT = 8


@dataclass(frozen=True)
class Tensor:
    """A tensor of a checkpoint; `seed` names its random data and survives a change of name.

    `filler` marks tensors that take the remaining room when a model is cut to a size. `data` is
    the content of a tensor instead of random bytes, in a model that really computes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    seed: str
    filler: bool = False
    data: bytes = b""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the first dimension."""
        return math.prod(self.shape[1:]) * DTYPE_BYTES[self.dtype]

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    def rows(self, most: int) -> int:
        """Return the number of rows after a cut to `most`; vectors and scalars stay whole."""
        return math.prod(self.shape) if len(self.shape) < 2 else min(self.shape[0], most)

    def cut(self, most: int) -> Tensor:
        """Return the tensor with at most `most` rows."""
        if len(self.shape) < 2:
            return self
        return replace(self, shape=(self.rows(most), *self.shape[1:]))


def bf16(name: str, *shape: int, filler: bool = False) -> Tensor:
    """Return a tensor in BF16 whose data depend on its name."""
    return Tensor(name, "BF16", shape, seed=name, filler=filler)


def fit(tensors: Sequence[Tensor], size: int) -> list[Tensor]:
    """Cut the rows of all tensors so that their data come to about `size` bytes."""

    row_bytes = [tensor.row_bytes for tensor in tensors]

    def total(most: int) -> int:
        pairs = zip(tensors, row_bytes, strict=True)
        return sum(tensor.rows(most) * width for tensor, width in pairs)

    low, high = 1, max(tensor.shape[0] for tensor in tensors if tensor.shape)
    while low < high:
        middle = (low + high + 1) // 2
        if total(middle) <= size:
            low = middle
        else:
            high = middle - 1
    fillers = [tensor for tensor in tensors if tensor.filler]
    room = max(size - total(low), 0) // max(len(fillers), 1)
    return [
        tensor.cut(low + room // tensor.row_bytes) if tensor.filler else tensor.cut(low)
        for tensor in tensors
    ]


def shard(tensors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """Split tensors, in order, into `count` shards of about the same size."""
    whole = sum(tensor.size for tensor in tensors)
    shards: list[list[Tensor]] = [[] for _ in range(count)]
    done = 0
    for tensor in tensors:
        shards[min(done * count // whole, count - 1)].append(tensor)
        done += tensor.size
    return shards


def named(shards: Sequence[Sequence[Tensor]]) -> dict[str, Sequence[Tensor]]:
    """Return the shards by their file names, which count from 1."""
    count = len(shards)
    return {
        f"model-{number:05d}-of-{count:05d}.safetensors": part
        for number, part in enumerate(shards, start=1)
    }


def index(files: Mapping[str, Sequence[Tensor]]) -> bytes:
    """Return model.safetensors.index.json for weight files by their names."""
    names = {tensor.name: file for file, part in files.items() for tensor in part}
    total = sum(tensor.size for part in files.values() for tensor in part)
    content = {"metadata": {"total_size": total}, "weight_map": dict(sorted(names.items()))}
    return (json.dumps(content, indent=2) + "\n").encode()


def header(tensors: Sequence[Tensor]) -> bytes:
    """Return the JSON header, padded with blanks to a multiple of 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        entries[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.size],
        }
        offset += tensor.size
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % HEADER_ALIGNMENT)


def safetensors(tensors: Sequence[Tensor], *, header_bytes: int = 0) -> Iterator[bytes]:
    """Yield the file; the header is padded to at least `header_bytes`."""
    head = header(tensors)
    head += b" " * (header_bytes - len(head))
    yield len(head).to_bytes(8, "little") + head
    for tensor in tensors:
        yield from [tensor.data] if tensor.data else random_bytes(tensor.seed, tensor.size)


def random_bytes(seed: str, size: int) -> Iterator[bytes]:
    """Yield `size` bytes that depend only on the seed."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")
    generator = random.Random(number)
    while size > 0:
        yield generator.randbytes(min(size, COPY_BYTES))
        size -= COPY_BYTES


def renamed(tensors: Sequence[Tensor], name: Callable[[str], str]) -> list[Tensor]:
    """Return the tensors with other names and the same data."""
    return [replace(tensor, name=name(tensor.name)) for tensor in tensors]
