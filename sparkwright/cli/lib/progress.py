"""Progress on standard error while hosts are asked: which have answered, for how long now."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from sparkwright.text.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])
_META = "sparkwright.verbosity"
#: Seconds: what is done sooner needs no word; and between two looks.
_PATIENCE, _EVERY = 1.0, 0.2
_SPINNER = "-\\|/"


def verbosity_options(command: _Command) -> _Command:
    """``-q`` and ``-v``; the command has no arguments for them."""
    for names, text in (
        (("-v", "--verbose"), "Show what pyinfra says of every host, on standard error."),
        (("-q", "--quiet"), "Show no progress."),
    ):
        option = click.option(*names, is_flag=True, expose_value=False, callback=_kept, help=text)
        command = option(command)
    return command


def chosen(name: str) -> bool:
    """Whether the command that runs was given ``quiet`` or ``verbose``."""
    context = click.get_current_context(silent=True)
    return context is not None and name in context.meta.get(_META, ())


@contextmanager
def shown() -> Iterator[Callable[[str, str], None]]:
    """Show who has answered while the hosts are asked: on a terminal, after a second.

    Yields:
        A function that takes a host and its latest event.
    """
    # Patches the standard library: a thread from before would run beside it.
    import sparkwright.run  # noqa: F401

    events: dict[str, str] = {}
    if chosen("quiet") or chosen("verbose") or not sys.stderr.isatty():
        yield events.__setitem__
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(events, ended), daemon=True)
    thread.start()
    try:
        yield events.__setitem__
    finally:
        ended.set()
        thread.join()


def line(events: Mapping[str, str], seconds: float) -> str:
    """Who has answered, and who is waited for.

    Args:
        events: the latest of each host.
    """
    waiting = [visible(host, 40) for host, event in events.items() if event == "asked"]
    ended = len(events) - len(waiting)
    state = f"waiting for {', '.join(waiting)}" if waiting else "planning and connecting"
    answered = f"{ended} of {len(events)} hosts done, " if events and waiting else ""
    return f"{answered}{state} ({seconds:.0f} s)"


def _show(events: Mapping[str, str], ended: threading.Event) -> None:
    began, turn = time.monotonic(), 0
    if ended.wait(_PATIENCE):
        return
    while not ended.wait(_EVERY):
        turn += 1
        text = line(events, time.monotonic() - began)
        sys.stderr.write(f"\r\x1b[K{_SPINNER[turn % 4]} {text[:76]}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _kept(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(_META, set()).add(option.name)
