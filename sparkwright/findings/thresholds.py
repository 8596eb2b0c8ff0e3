"""Thresholds: one set of numbers for doctor, watch and alert rules.

Read them as ``thresholds.THRESHOLDS``, where they are used: a changed number changes all three.
"""

from sparkwright.text.shipped_yaml import beside

THRESHOLDS: dict[str, float]


def __getattr__(name: str) -> dict[str, float]:
    """Read the numbers when the first is needed: help and mistakes load no YAML."""
    if name != "THRESHOLDS":
        raise AttributeError(name)
    globals()[name] = beside(__file__, "thresholds.yaml")
    return THRESHOLDS  # noqa: F821
