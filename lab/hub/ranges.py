"""Byte ranges of a request, by RFC 9110 section 14."""

from __future__ import annotations

import re

_RANGE = re.compile(r"(\d*)\s*-\s*(\d*)")
MAX_RANGES = 64


class Unsatisfiable(Exception):
    """No range lies within the file: the answer is 416."""


def parse_ranges(header: str | None, size: int) -> list[tuple[int, int]]:
    """Return (start, end) pairs, end exclusive; an empty list means the whole file.

    A header that is no list of byte ranges is ignored, as the RFC requires.
    """
    if header is None:
        return []
    unit, _, listing = header.partition("=")
    parts = [_RANGE.fullmatch(part.strip()) for part in listing.split(",")]
    if unit.strip().lower() != "bytes" or len(parts) > MAX_RANGES:
        return []
    result = []
    for part in parts:
        if part is None or part.group(0) == "-":
            return []
        first, last = part.groups()
        if first == "":
            start, end = max(size - int(last), 0), size
        else:
            start, end = int(first), min(int(last) + 1, size) if last else size
            if last and int(last) < start:
                return []
        if start < end:
            result.append((start, end))
    if not result:
        raise Unsatisfiable
    return result
