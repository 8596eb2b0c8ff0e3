"""Short texts for figures, ranges and lists of hosts."""

import math
import re
from collections.abc import Sequence

#: Largest number of hosts that are named one by one.
_NAMED = 6


def number(value: float) -> str:
    """Format a number with three significant digits, without an exponent: ``1234``, ``91.7``,
    ``0.088``.
    """
    if not math.isfinite(value):
        return "-"
    digits = 0 if value == 0 else 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(max(digits, 0), 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: float, unit: str) -> str:
    """Format a figure with its unit: times in ms, shares in percent."""
    if unit == "s":
        return f"{number(1000 * value)} ms"
    return f"{number(100 * value)} %" if unit == "share" else f"{number(value)} {unit}"


def figure(low: float, high: float, unit: str) -> str:
    """Format a figure or a range, with its unit."""
    least, most = amount(low, unit), amount(high, unit)
    return most if least == most else f"{least.rpartition(' ')[0]} to {most}"


def hosts_in_short(hosts: Sequence[str]) -> str:
    """Return the hosts' names; for many hosts, the first names and the number of further hosts."""
    if len(hosts) <= _NAMED:
        return ", ".join(hosts)
    return f"{', '.join(hosts[: _NAMED - 1])} and {len(hosts) - _NAMED + 1} more"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key for natural order: spark-2 before spark-10."""
    return tuple(
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"([0-9]+)", name)
    )
