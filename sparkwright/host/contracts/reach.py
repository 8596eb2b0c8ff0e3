"""Which other hosts a host reaches, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """Another host, and where it may be reached: names and addresses, the best first.

    Attributes:
        port: that is tried; an answer that nothing listens there is one, too.
    """

    name: str
    addresses: tuple[str, ...]
    port: int


@dataclass(frozen=True)
class Reached:
    """Where another host was reached.

    Attributes:
        address: as a number; None where it was not.
        written: what of the question led there.
        dns: whether that is a name that DNS knows.
        tried: what did not lead there, each with the reason.
    """

    address: str | None = None
    written: str | None = None
    dns: bool = False
    tried: tuple[str, ...] = ()
