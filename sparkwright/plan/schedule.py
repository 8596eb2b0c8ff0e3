"""Calendars of exclusive services: the running service at each time, and their faults."""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.config.schedule import DAY, DAYS, calendar
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import Fault, suggest
from sparkwright.plan.tags import MESSAGES

#: Begin and end in minutes of the week, and the service that runs then.
Window = tuple[int, int, str]


def windows(settings: HostSettings) -> dict[str, tuple[Window, ...]]:
    """Times at which a member other than the default of a group runs, by group."""
    result: dict[str, tuple[Window, ...]] = {}
    for name, text in settings.schedule.items():
        service = settings.services.get(name)
        if service is not None and service.exclusive is not None:
            own = ((begin, end, name) for begin, end in calendar(text).windows())
            result[service.exclusive] = (*result.get(service.exclusive, ()), *own)
    return result


def times(settings: HostSettings) -> tuple[str, ...]:
    """Return every time at which the active service may change, in ``OnCalendar=`` syntax."""
    every = (calendar(text).times() for text in settings.schedule.values())
    return tuple(sorted({item for both in every for item in both}))


def problems(settings: HostSettings) -> Iterator[Fault]:
    """Return faults of calendars: a service without a group, or two services of a group at the same
    time.
    """
    for name in settings.schedule:
        service = settings.services.get(name)
        if service is None:
            near = suggest(name, list(settings.services))
            yield MESSAGES.fault("no-scheduled-service", name, near=near)
        elif service.exclusive is None:
            yield MESSAGES.fault("no-group", name, name=name)
    judged = set()
    for group, its in windows(settings).items():
        for (*first, name), (*second, other) in combinations(its, 2):
            begin, end = max(first[0], second[0]), min(first[1], second[1])
            if begin < end and name != other and (name, other) not in judged:
                judged.add((name, other))
                hour, minute = divmod(begin % DAY, 60)
                yield MESSAGES.fault(
                    "same-time", other, first=name, second=other, group=group,
                    day=DAYS[begin // DAY], hour=hour, minute=minute,
                    calendar=settings.schedule[name],
                )  # fmt: skip
