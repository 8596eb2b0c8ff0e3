"""Waiting until something passes."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkwright.host.lib.annotations import T


def remaining(fault: Callable[[], T], seconds: float, pause: float = 0.1) -> T:
    """A fault that is still there after so many seconds; once it is gone, nothing of it.

    Args:
        fault: gives it, or what is false without one; asked for again and again.
        pause: seconds between two times.
    """
    until = time.monotonic() + seconds
    while (result := fault()) and time.monotonic() <= until:
        time.sleep(pause)
    return result
