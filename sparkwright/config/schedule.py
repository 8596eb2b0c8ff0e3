"""Hours in which an exclusive service runs: ``Mon..Fri 08:00..18:00``, by the host's own clock."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from sparkwright.host.lib.records import dataclass

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY = 24 * 60
WEEK = 7 * DAY
_TIMES = re.compile(r"(?:(?P<days>\S+) )?(?P<begin>\d\d:\d\d)\.\.(?P<end>\d\d:\d\d)", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)


@dataclass(frozen=True)
class Calendar:
    """A parsed calendar.

    Attributes:
        days: days on which the hours begin, by ``DAYS``.
        begin, end: minutes of the day; an end before the start is on the next day.
    """

    days: tuple[int, ...]
    begin: int
    end: int

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield start and end in minutes of the week, which begins on Monday. A window that reaches
        into the next week is split in two.
        """
        for day in self.days:
            begin = day * DAY + self.begin
            end = begin + self._length
            yield begin, min(end, WEEK)
            if end > WEEK:
                yield 0, end - WEEK

    def times(self) -> tuple[str, ...]:
        """Return start and end in the syntax of ``OnCalendar=``."""
        over = self.begin + self._length
        after = tuple(sorted({(day + over // DAY) % 7 for day in self.days}))
        return _on(self.days, self.begin), _on(after, over % DAY)

    @property
    def _length(self) -> int:
        return (self.end - self.begin) % DAY or DAY


def _on(days: tuple[int, ...], minute: int) -> str:
    names = ",".join(DAYS[day] for day in days)
    return f"{names} *-*-* {minute // 60:02d}:{minute % 60:02d}:00"


def calendar(text: str) -> Calendar:
    """Parse the text of a calendar.

    Raises:
        ValueError: the calendar is invalid; the message has the fault and the syntax.
    """
    match = _TIMES.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:60]!r} is not a calendar: write it like 'Mon..Fri 08:00..18:00'")
    begin, end = _minute(match["begin"]), _minute(match["end"])
    if begin in (end, DAY):
        raise ValueError(f"{text!r} ends when it begins: write 00:00..24:00 for the whole day")
    return Calendar(_days(match["days"]) if match["days"] else tuple(range(7)), begin, end)


def _minute(time: str) -> int:
    if not _TIME.fullmatch(time):
        raise ValueError(f"{time!r} is not a time: write 00:00 to 24:00")
    hours, _, minutes = time.partition(":")
    return int(hours) * 60 + int(minutes)


def _days(text: str) -> tuple[int, ...]:
    result: set[int] = set()
    for part in text.split(","):
        first, to, last = part.partition("..")
        if first not in DAYS or (to and last not in DAYS):
            raise ValueError(f"{part[:20]!r} is not a day: write {', '.join(DAYS)}, or Mon..Fri")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        result |= {(begin + day) % 7 for day in range((end - begin) % 7 + 1)}
    return tuple(sorted(result))


def _valid(text: str) -> str:
    calendar(text)
    return text


#: Text of a valid calendar.
CalendarText = Annotated[str, AfterValidator(_valid)]
