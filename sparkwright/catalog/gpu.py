"""GPU families by compute capability, and driver versions."""

from __future__ import annotations

import re

#: Architectures by compute capability (major, minor); minor None stands for every minor.
_FAMILIES: tuple[tuple[tuple[int, int | None], str], ...] = (
    ((12, 1), "GB10 (sm_121a)"),
    ((12, 0), "RTX 50 / RTX PRO Blackwell (sm_120)"),
    ((10, None), "data-centre Blackwell (B200/GB200)"),
    ((9, None), "Hopper"),
    ((8, 9), "Ada"),
    ((8, None), "Ampere"),
    ((7, 5), "Turing"),
)


def family(compute_cap: str | None) -> str:
    """``12.1`` -> ``GB10 (sm_121a)``."""
    match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", compute_cap or "")
    if match is None:
        return "unknown architecture"
    major, minor = int(match[1]), int(match[2])
    for (want_major, want_minor), name in _FAMILIES:
        if major == want_major and want_minor in (None, minor):
            return name
    return f"sm_{major}{minor}"


def driver_major(version: str | None) -> int | None:
    """``580.95.05`` -> 580; None where there is no number to read."""
    match = re.match(r"\d{1,9}", version or "")
    return int(match[0]) if match else None
