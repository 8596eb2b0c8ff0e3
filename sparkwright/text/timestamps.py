"""Timestamps as Docker writes them."""

import datetime as dt


def epoch(moment: str) -> float:
    """RFC 3339 in UTC as seconds since the epoch: Docker writes nanoseconds, Python reads
    microseconds.

    An invalid time, which only a faulty host sends, counts as the epoch itself.
    """
    whole, _, fraction = moment.rstrip("Z").partition(".")
    try:
        read = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC)
        return read.timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError):
        return 0.0


def utc(seconds: float) -> dt.datetime:
    """Seconds since the epoch as a time of day; the epoch itself for a number beyond the
    calendar.
    """
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return dt.datetime.fromtimestamp(0, dt.UTC)
