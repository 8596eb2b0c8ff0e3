"""Maintenance and stop marks of users on a host, as text."""

from sparkwright.host.lib.homes import Maintenance, Stopped
from sparkwright.text.lock_owner import age
from sparkwright.text.visible import visible


def in_maintenance(mark: Maintenance, now: float) -> str:
    """Return a text such as ``in maintenance for 3 min, by ann@laptop: a new fan``, by the host's
    clock.
    """
    return f"in maintenance for {age(now - mark.at)}, by {_who(mark)}"


def stopped(mark: Stopped, now: float) -> str:
    """Return a text such as ``stopped 3 min ago, by ann@laptop: too loud``."""
    return f"stopped {age(now - mark.at)} ago, by {_who(mark)}"


def _who(mark: Maintenance | Stopped) -> str:
    why = f": {visible(mark.why, 200)}" if mark.why else ""
    return f"{visible(mark.by, 80)}{why}"
