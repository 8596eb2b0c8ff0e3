"""A byte range of a request, as RFC 9110 section 14 defines it."""

import re

_RANGE = re.compile(r"\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*", re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range is outside the file: the answer is 416."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return (start, end), end exclusive; None means the whole file.

    A header that is not a range of bytes is ignored, as the RFC requires; several ranges are also
    ignored, which a server may do.
    """
    asked = _RANGE.fullmatch(header or "")
    if asked is None or not any(asked.groups()):
        return None
    first, last = asked.groups()
    if first == "":
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise Unsatisfiable
    return start, end
