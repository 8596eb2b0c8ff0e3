"""Parallel work in threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from sparkwright.host.lib.annotations import T


def at_once(act: Callable[[T], object], things: Iterable[T]) -> None:
    """Call ``act`` for every item, each call in a separate thread, and wait for all calls."""
    if listed := list(things):
        with ThreadPoolExecutor(max_workers=len(listed)) as pool:
            list(pool.map(act, listed))
