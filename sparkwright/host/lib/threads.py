"""Parallel work in threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from sparkwright.host.lib.annotations import T


def at_once(act: Callable[[T], object], things: Iterable[T]) -> None:
    """Call ``act`` for all items, each in its own thread, and wait for all."""
    if listed := list(things):
        with ThreadPoolExecutor(max_workers=len(listed)) as pool:
            list(pool.map(act, listed))
