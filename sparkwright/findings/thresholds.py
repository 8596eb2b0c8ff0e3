"""Thresholds: one set of numbers for doctor, watch and alert rules."""

from functools import cache

from sparkwright.text.shipped_yaml import beside


@cache
def limits() -> dict[str, float]:
    """The numbers by name, read at their first use: help and mistakes load no YAML.

    Callers read the numbers at each use, so a change applies to doctor, watch and alert rules.
    """
    numbers: dict[str, float] = beside(__file__, "thresholds.yaml")
    return numbers
