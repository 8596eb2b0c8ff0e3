"""Thresholds: one set of numbers for doctor, watch and alert rules."""

from functools import cache

from sparkwright.text.shipped_yaml import beside


@cache
def limits() -> dict[str, float]:
    """The numbers by name, read when the first is needed: help and mistakes load no YAML.

    Callers read the numbers from the module at use: a changed number changes all three.
    """
    numbers: dict[str, float] = beside(__file__, "thresholds.yaml")
    return numbers
