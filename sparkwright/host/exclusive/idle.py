"""Stop each service with ``idle`` after its idle time without a request.

Only POST requests with a key count, since only these requests start the service again: a client
that lists models or reads metrics keeps no service running. This module is part of the waking
program (on_request.py).
"""

import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkwright.host.lib import exclusive, records, systemd
from sparkwright.host.proxy import place
from sparkwright.host.service import current

#: Seconds between two checks.
_LOOK = 5.0


@records.dataclass(frozen=True)
class Look:
    """State of a service at one observation.

    Attributes:
        last: HAProxy's mark of the service's last request.
        busy: whether the service works on a request.
        since: time of the last request, by the monotonic clock.
    """

    last: str
    busy: bool
    since: float


class Idle:
    """Repeated observation of the services.

    Args:
        handled: number of requests that the program itself holds, by service.
        rest: function that stops a service.
    """

    def __init__(
        self, root: Path, handled: Mapping[str, int], rest: Callable[[str], object]
    ) -> None:
        self._root, self._handled, self._rest = root, handled, rest
        self._looks: dict[str, Look] = {}

    def watch(self) -> None:
        """Observe the services in an endless loop."""
        while True:
            try:
                self.look(time.monotonic())
            except Exception:
                traceback.print_exc()
            time.sleep(_LOOK)

    def look(self, now: float) -> None:
        """Observe the services once, and stop idle services."""
        runs = exclusive.running(self._root / "state").values()
        for name, seconds in exclusive.groups(self._root / "state").idle.items():
            before = self._looks.pop(name, None)
            record = current(self._root / "services" / name)
            if name not in runs or not record or not record.pool:
                continue
            if not systemd.is_active(record.unit):
                continue
            busy = bool(self._handled.get(name) or place.in_flight(record.pool))
            look = Look(place.last_request(record.pool), busy, now)
            # A scrape of metrics may run during one check, but hardly during two successive checks.
            if before and before.last == look.last and not (busy and before.busy):
                look = Look(look.last, busy, before.since)
            if busy or now - look.since < seconds:
                self._looks[name] = look
            else:
                self._rest(name)
