"""Owner of a host's lock, as text."""

from sparkwright.host.lock import Owner
from sparkwright.text.visible import visible


def described(owner: Owner, now: float) -> str:
    """Return a text such as ``ann@laptop (for 3 min)``. Both times come from the host's clock, in
    seconds since the epoch.
    """
    return (
        f"{visible(owner.by, 80)} (for {age(now - (now if owner.since is None else owner.since))})"
    )


def age(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
