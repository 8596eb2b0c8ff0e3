"""Timestamps as Docker writes them."""

import datetime as dt


def epoch(moment: str) -> float:
    """Convert an RFC 3339 time in UTC to seconds since the epoch: Docker writes nanoseconds, but
    Python reads microseconds.

    An invalid time, which only a faulty host sends, counts as the epoch.
    """
    whole, _, fraction = moment.rstrip("Z").partition(".")
    try:
        read = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC)
        return read.timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError):
        return 0.0


def utc(seconds: float) -> dt.datetime:
    """Convert seconds since the epoch to a time in UTC; a number beyond the calendar becomes the
    epoch.
    """
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return dt.datetime.fromtimestamp(0, dt.UTC)
