"""Thresholds: one set of numbers for doctor, watch and alert rules.

Read them as ``thresholds.THRESHOLDS``, where they are used: a changed number changes all three.
"""

from sparkwright.text.shipped_yaml import beside

THRESHOLDS: dict[str, float] = beside(__file__, "thresholds.yaml")
