"""Wait until a fault has passed."""

import time
from collections.abc import Callable

from sparkwright.host.lib.annotations import T


def remaining(fault: Callable[[], T], seconds: float, pause: float = 0.1) -> T:
    """Return a fault that remains after ``seconds``; a false value once the fault has gone.

    Args:
        fault: function that returns the fault, or a false value; called repeatedly.
        pause: seconds between two calls.
    """
    until = time.monotonic() + seconds
    while (result := fault()) and time.monotonic() <= until:
        time.sleep(pause)
    return result
