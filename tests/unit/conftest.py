"""One way to try many inputs: the same ones everywhere, and no clock that a busy machine fails."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "sparkwright",
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparkwright")
