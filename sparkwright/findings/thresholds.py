"""Thresholds: one set of numbers for doctor, watch and alert rules."""

from functools import cache

from sparkwright.text.shipped_yaml import beside


@cache
def limits() -> dict[str, float]:
    """Return the thresholds by name. The first use reads the file: help and mistakes load no YAML.

    Callers read a threshold at each use, so a change applies to doctor, watch and alert rules.
    """
    numbers: dict[str, float] = beside(__file__, "thresholds.yaml")
    return numbers
