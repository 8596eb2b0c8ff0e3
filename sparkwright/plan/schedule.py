"""Exclusive services by the calendar: which one runs when, and what of that can't be."""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.config.schedule import DAY, DAYS, calendar
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import Fault, Messages, suggest

_MESSAGES = Messages(__file__)

#: Begin and end in minutes of the week, and the service that runs then.
Window = tuple[int, int, str]


def windows(settings: HostSettings) -> dict[str, tuple[Window, ...]]:
    """The times at which another member than the default of a group runs, by group."""
    result: dict[str, tuple[Window, ...]] = {}
    for name, text in settings.schedule.items():
        service = settings.services.get(name)
        if service is not None and service.exclusive is not None:
            own = ((begin, end, name) for begin, end in calendar(text).windows())
            result[service.exclusive] = (*result.get(service.exclusive, ()), *own)
    return result


def times(settings: HostSettings) -> tuple[str, ...]:
    """Every time at which another one may have to run, as ``OnCalendar=`` takes them."""
    every = (calendar(text).times() for text in settings.schedule.values())
    return tuple(sorted({item for both in every for item in both}))


def problems(settings: HostSettings) -> Iterator[Fault]:
    """Calendars of what is of no group, and of two of one group at the same time."""
    for name in settings.schedule:
        service = settings.services.get(name)
        if service is None:
            yield name, "no such service on this host", suggest(name, list(settings.services))
        elif service.exclusive is None:
            yield _MESSAGES.fault("no-group", name, service=name)
    texts = set()
    for group, its in windows(settings).items():
        for item, other in combinations(its, 2):
            begin, end = max(item[0], other[0]), min(item[1], other[1])
            both = (item[2], other[2])
            if begin < end and item[2] != other[2] and both not in texts:
                texts.add(both)
                at = f"{DAYS[begin // DAY]} {begin % DAY // 60:02d}:{begin % 60:02d}"
                hours = settings.schedule[both[0]]
                facts = {"services": both, "group": group, "at": at, "hours": hours}
                yield _MESSAGES.fault("same-time", both[1], **facts)
