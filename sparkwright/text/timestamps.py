"""Timestamps as Docker writes them."""

from __future__ import annotations

import datetime as dt


def epoch(moment: str) -> float:
    """RFC 3339 in UTC as seconds since the epoch: Docker gives nanoseconds, Python reads micro."""
    whole, _, fraction = moment.rstrip("Z").partition(".")
    read = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC)
    return read.timestamp() + float(f"0.{fraction or 0}")
