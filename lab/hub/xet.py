"""The lab's Xet storage: a fake for Hugging Face's storage, with hf_xet's requests.

A file is rebuilt from ranges of chunks of xorbs (Hugging Face's Xet documentation: reconstruction
API, xorb format). In this fake, a file's bytes are its xorbs, cut every XORB_CHUNKS chunks; a
header of eight bytes precedes each unchanged chunk. Unlike in the real storage, all chunks have one
length, nothing is shared or compressed, and hashes are not Merkle trees: clients check no hash, so
fetched files must be hashed. The fake lacks version 2 of the reconstruction API; hf_xet 1.8 does
not need version 2.
"""

import hashlib
import hmac
import os
from pathlib import Path
from typing import Any

from .content import FileResponse, Source
from .hub_faults import Counters, Faults
from .store import File

CHUNK_BYTES = 64 << 10
HEADER_BYTES = 8
FRAME_BYTES = HEADER_BYTES + CHUNK_BYTES
#: A real xorb has up to 64 MiB. The lab's files are small, and must have several xorbs.
XORB_CHUNKS = 32


def file_hash(file: File) -> str:
    """Name of a large file in the hub's Xet storage: 64 hex digits."""
    return hashlib.sha256(f"xet {file.sha256}".encode()).hexdigest()


def token(key: bytes, repository: str, expires: int) -> str:
    """A token for the files of one repository, valid until `expires`, in seconds since 1970."""
    text = f"{repository}:{expires}"
    return f"{text}:{hmac.new(key, text.encode(), 'sha256').hexdigest()}"


def opened(key: bytes, shown: str, now: float) -> str | None:
    """The repository that a token gives access to; None for a bad or an expired token."""
    repository, _, rest = shown.partition(":")
    expires, _, _ = rest.partition(":")
    if not expires.isdigit() or int(expires) < now:
        return None
    good = token(key, repository, int(expires))
    return repository if hmac.compare_digest(good, shown) else None


def reconstruction(file: File, start: int, end: int, urls: list[str]) -> dict[str, Any]:
    """Return the parts of bytes [start, end) of a file; urls are its xorbs' URLs, in order."""
    first, beyond = start // CHUNK_BYTES, -(-end // CHUNK_BYTES)
    terms, fetch = [], {}
    for index in range(first // XORB_CHUNKS, -(-beyond // XORB_CHUNKS)):
        base = index * XORB_CHUNKS
        low, high = max(first - base, 0), min(beyond - base, XORB_CHUNKS)
        length = min(file.size, (base + high) * CHUNK_BYTES) - (base + low) * CHUNK_BYTES
        name = hashlib.sha256(f"xorb {file.sha256} {index}".encode()).hexdigest()
        chunks = {"start": low, "end": high}
        terms.append({"hash": name, "unpacked_length": length, "range": chunks})
        last = low * FRAME_BYTES + length + HEADER_BYTES * (high - low) - 1
        where = {"start": low * FRAME_BYTES, "end": last}
        fetch[name] = [{"range": chunks, "url": urls[index], "url_range": where}]
    return {
        "offset_into_first_range": start - first * CHUNK_BYTES,
        "terms": terms,
        "fetch_info": fetch,
    }


def xorbs(file: File) -> int:
    """Number of a file's xorbs."""
    return -(-file.size // (XORB_CHUNKS * CHUNK_BYTES))


class XorbResponse(FileResponse):
    """Answer with one xorb of a file, with the ranges, faults and counters of FileResponse."""

    def __init__(
        self,
        repository: str,
        blob: Path,
        file: File,
        index: int,
        faults: Faults,
        counters: Counters,
    ) -> None:
        self._base = index * XORB_CHUNKS * CHUNK_BYTES
        self._length = min(file.size - self._base, XORB_CHUNKS * CHUNK_BYTES)
        framed = self._length + HEADER_BYTES * -(-self._length // CHUNK_BYTES)
        source = Source(blob, framed, f"{file.sha256}-{index}", repository, file.path)
        headers = {"content-type": "application/octet-stream", "accept-ranges": "bytes"}
        super().__init__(source, faults, counters, {**headers, "etag": f'"{source.etag}"'})

    def read(self, file: int, count: int, start: int) -> bytes:
        """Read a piece of the xorb: chunks with their headers before them."""
        index, skip = divmod(start, FRAME_BYTES)
        framed = bytearray()
        while len(framed) < skip + count and index * CHUNK_BYTES < self._length:
            length = min(CHUNK_BYTES, self._length - index * CHUNK_BYTES)
            three = length.to_bytes(3, "little")
            # Version 0, compressed length, no compression, length.
            framed += b"\0" + three + b"\0" + three
            framed += os.pread(file, length, self._base + index * CHUNK_BYTES)
            index += 1
        return bytes(framed[skip : skip + count])
