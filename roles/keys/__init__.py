"""Keys: which API keys open a host's proxies, for ``sparkwright key``."""

from __future__ import annotations

from sparkwright.run import keys
from sparkwright.run.asked import ask_each


def known(answers: str | None = None) -> None:
    """Report the keys that each host's proxies know, by hash and name.

    Args:
        answers: file that gets what the hosts answer.
    """
    ask_each("Keys: look", keys.known)


def planned(answers: str | None = None) -> None:
    """Have each host's proxies know the keys of the plan, and no other.

    Args:
        answers: file that gets what the hosts answer.
    """
    ask_each("Keys: change", keys.planned)
